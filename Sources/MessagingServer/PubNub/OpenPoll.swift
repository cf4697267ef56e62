internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import NIOCore
internal import Realtime
internal import StrictJSON
internal import Synchronization

/// A subscriber that waits for its next events: it is answered once, by whatever comes first.
final class OpenPoll: Sendable {
  private struct State {
    var place: Timetoken
    var subscriber: SubscriberID?
    var waitCount = 0
    var timer: Scheduled<Void>?
    /// When the caller's right to wait ends; nil for never.
    var end: Date?
    var isEnded = false
  }

  let exchange: HTTPExchange
  let caller: PubNubCaller
  let call: SubscribeCall
  let filter: FilterExpression?
  private let state: Mutex<State>
  /// Takes the poll off its list.
  private let didEnd: @Sendable (OpenPoll) -> Void

  init(
    _ exchange: HTTPExchange, _ caller: PubNubCaller, _ call: SubscribeCall, after place: Timetoken,
    filter: FilterExpression?, until end: Date?,
    didEnd: @escaping @Sendable (OpenPoll) -> Void
  ) {
    self.exchange = exchange
    self.caller = caller
    self.call = call
    self.filter = filter
    self.didEnd = didEnd
    state = Mutex(State(place: place, end: end))
  }

  /// The place up to which the subscriber has everything.
  var place: Timetoken { state.withLock { $0.place } }

  var isEnded: Bool { state.withLock { $0.isEnded } }

  /// When the caller's right to wait ends; nil for never.
  var end: Date? {
    get { state.withLock { $0.end } }
    set { state.withLock { $0.end = newValue } }
  }

  /// Begins to wait in `realtime`, from the poll's place on, instead of an earlier wait.
  func wait(for subscription: Subscription, in realtime: Realtime) {
    let begun = state.withLock { state -> (number: Int, place: Timetoken)? in
      guard !state.isEnded else { return nil }
      state.waitCount += 1
      return (state.waitCount, state.place)
    }
    guard let begun else { return }
    let id = realtime.poll(subscription, after: begun.place) { [self] result in
      take(result, subscription, realtime)
    }
    let superseded = state.withLock { state -> SubscriberID? in
      // Events that were there already have been taken before: they have ended the poll, or begun a later wait.
      guard !state.isEnded, state.waitCount == begun.number else { return id }
      defer { state.subscriber = id }
      return state.subscriber
    }
    if let superseded { realtime.cancel(superseded) }
  }

  private func take(
    _ result: Result<Events, EngineError>, _ subscription: Subscription, _ realtime: Realtime
  ) {
    switch result {
    case .success(let events):
      var envelope = SubscribeEnvelope(events.end)
      var isEmpty = true
      for event in events.events where passes(event.message) {
        envelope.append(
          EventJSON(event.message, subscribeKey: caller.application.application.subscribeKey),
          through: event.source)
        isEmpty = false
      }
      if isEmpty {
        // The filter has left nothing: continue behind it.
        state.withLock { $0.place = events.end }
        wait(for: subscription, in: realtime)
      } else {
        answer(envelope.response, realtime)
      }
    case .failure:
      // The server stops, or its vault was locked: the client asks again, and is held until the next unlock.
      answer(SubscribeEnvelope(place).response, realtime)
    }
  }

  private func passes(_ message: LogMessage) -> Bool {
    guard let filter else { return true }
    let notes = MessageNotes(message.headers)
    if notes.kind == .presence { return true }
    let payload =
      filter.readsPayload ? try? JSONReader.value(PayloadJSON(message.payload).bytes) : nil
    let meta = notes.meta.flatMap { try? JSONReader.value(Array($0.utf8)) }
    return filter.matches(payload: payload ?? .null, meta: meta ?? .null)
  }

  /// Answers after a time, unless something else does before.
  func answerWithoutEvents(after time: Duration, _ realtime: Realtime) {
    let timer = exchange.eventLoop.scheduleTask(in: TimeAmount(time)) { [self] in
      answer(SubscribeEnvelope(place).response, realtime)
    }
    let isOver = state.withLock { state in
      state.timer = timer
      return state.isEnded
    }
    if isOver { timer.cancel() }
  }

  /// Answers, unless something else has.
  func answer(_ response: HTTPResponse, _ realtime: Realtime) {
    if finish(realtime) { exchange.answer(response) }
  }

  /// Ends the poll of a client that has left.
  func abandon(_ realtime: Realtime) { _ = finish(realtime) }

  private func finish(_ realtime: Realtime) -> Bool {
    let ended = state.withLock { state -> State? in
      guard !state.isEnded else { return nil }
      state.isEnded = true
      defer {
        state.subscriber = nil
        state.timer = nil
      }
      return state
    }
    guard let ended else { return false }
    ended.timer?.cancel()
    if let subscriber = ended.subscriber { realtime.cancel(subscriber) }
    didEnd(self)
    return true
  }
}

/// The polls that wait, for what ends them or changes what they listen to.
final class PollRegistry: Sendable {
  private struct State {
    var polls: [ObjectIdentifier: OpenPoll] = [:]
    var round = 0
  }

  private let state = Mutex(State())
  /// The groups that the polls wait for.
  let groups = SharedGroups()

  var count: Int { state.withLock { $0.polls.count } }

  /// How often access or groups have changed: a poll that is decided before a round and added after it was missed by
  /// it.
  var round: Int { state.withLock { $0.round } }

  /// Begins a round, and returns the polls of it.
  func beginRound() -> [OpenPoll] {
    state.withLock { state in
      state.round += 1
      return Array(state.polls.values)
    }
  }

  /// The polls whose right to wait has ended.
  func ended(at now: Date) -> [OpenPoll] {
    state.withLock { Array($0.polls.values) }.filter { $0.end.map { $0 <= now } ?? false }
  }

  func add(_ poll: OpenPoll) {
    state.withLock { $0.polls[ObjectIdentifier(poll)] = poll }
    // It can have ended before it was on the list.
    if poll.isEnded { remove(poll) }
  }

  func remove(_ poll: OpenPoll) {
    _ = state.withLock { $0.polls.removeValue(forKey: ObjectIdentifier(poll)) }
  }
}
