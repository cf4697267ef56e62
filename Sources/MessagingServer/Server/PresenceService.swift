internal import FileLayer
internal import Foundation
internal import MessagingQueue
internal import Realtime
internal import StrictJSON
internal import Synchronization

/// Keeps who is present, and sends the events of presence to their subscribers in the order of the changes.
///
/// Presence is in memory alone: a restart and a lock of the vault empty it.
final class PresenceService: Sendable {
  private struct State {
    var presence = Presence()
    var arrival: UInt64 = 0
  }

  private let state = Mutex(State())
  /// One that is dropped is lost, because a client that wants certainty asks who is present.
  private let signals: SignalQueue
  private let now: @Sendable () -> Date

  init(_ realtime: Realtime, now: @escaping @Sendable () -> Date) {
    signals = SignalQueue(realtime)
    self.now = now
  }

  /// Sends events until the task is cancelled.
  func run() async throws(EngineError) { try await signals.run() }

  /// Changes presence and sends the events of the change.
  func change(
    at instant: ContinuousClock.Instant = .now,
    _ body: (inout Presence, _ arrival: UInt64, PresenceTime) throws(PresenceRefusal) ->
      [PresenceEvent]
  ) throws(PresenceRefusal) {
    let time = PresenceTime(instant, unixSeconds: Int(now().timeIntervalSince1970))
    try state.withLock { (state) throws(PresenceRefusal) in
      state.arrival += 1
      // In the lock, so that the events have the order of the changes.
      for event in try body(&state.presence, state.arrival, time) {
        if let message = PresenceJSON.message(event) { _ = signals.send(message) }
      }
    }
  }

  /// Reads presence.
  func read<Result>(_ body: (borrowing Presence) -> Result) -> Result {
    state.withLock { body($0.presence) }
  }

  /// Ends the presence of users who gave no sign of life.
  ///
  /// In parts, so that calls of clients come between.
  func expire(at instant: ContinuousClock.Instant = .now) {
    repeat {
      try? change(at: instant) { (presence, _, time) throws(PresenceRefusal) in
        presence.expire(at: time)
      }
    } while read { $0.nextDeadline.map { $0 <= instant } ?? false }
  }

  /// Takes no more events.
  func finish() { signals.finish() }
}

/// Presence events as messages in PubNub's form.
enum PresenceJSON {
  /// The message for the presence channel; nil for a name that is too long for one.
  static func message(_ event: PresenceEvent) -> Message? {
    guard let channel = try? Channel(event.channel.name + Channel.presenceSuffix) else {
      return nil
    }
    var notes = MessageNotes()
    notes.kind = .presence
    var members: [JSONMember] = []
    var meta: [JSONMember] = []
    func add(_ name: String, _ value: JSONValue) {
      members.append(JSONMember(name, value))
      meta.append(JSONMember("pn_\(name)", value))
    }
    switch event.content {
    case .change(let action, let user, let state):
      add("action", .string(action.name))
      add("uuid", .string(user.text))
      if let state, let value = try? JSONReader.value(state) {
        members.append(JSONMember("data", value))
      } else if action == .timeout {
        members.append(JSONMember("data", .object([])))
      }
    case .interval(let interval):
      add("action", "interval")
      for (name, users) in [
        ("join", interval.joined), ("leave", interval.left), ("timeout", interval.timedOut),
      ] where !users.isEmpty {
        members.append(JSONMember(name, .array(users.map { .string($0.text) })))
      }
      if interval.isIncomplete { members.append(JSONMember("here_now_refresh", true)) }
    }
    add("timestamp", .integer(Int64(event.unixSeconds)))
    add("occupancy", .integer(Int64(event.occupancy)))
    meta.append(JSONMember("pn_ispresence", 1))
    meta.append(JSONMember("pn_channel", .string(event.channel.nameInApplication)))
    notes.meta = JSONValue.object(meta).text
    return Message(
      channel: channel, payload: Array(JSONValue.object(members).text.utf8),
      headers: notes.headers)
  }
}

extension PresenceEvent.Action {
  /// PubNub's word.
  fileprivate var name: String {
    switch self {
    case .join: "join"
    case .leave: "leave"
    case .timeout: "timeout"
    case .stateChange: "state-change"
    }
  }
}
