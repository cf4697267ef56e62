internal import AccessControl
internal import Foundation
internal import MessagingQueue

/// What a connection of Pusher's protocol can do.
struct PusherLimits: Sendable {
  /// The most channels of a connection.
  ///
  /// Default: 500.
  var channelCount = 500
  /// Frames each second, and many after a pause: a client subscribes to all its channels when it connects.
  ///
  /// Default: 100, and 2,000.
  var frames = {
    var limits = RequestRate.Limits()
    limits.requestsPerSecond = 100
    limits.burstCount = 2_000
    return limits
  }()
  /// Client events each second.
  ///
  /// Default: 10.
  var clientEvents = {
    var limits = RequestRate.Limits()
    limits.requestsPerSecond = 10
    limits.burstCount = 10
    return limits
  }()
  /// What a subscription takes in memory, about: its names, and the `user_info` of a member.
  static let channelByteCount = 2 << 10
  /// The largest data of an event, in bytes.
  static let dataByteCount = 10_240
  /// The longest name of an event, in characters.
  static let eventNameCount = 200
  /// The most messages that wait for the read of a cache channel's newest one.
  static let waitingCount = 1_000
}

/// A subscription that a client asks for.
struct PusherSubscribing: Sendable, Equatable {
  let channel: PusherChannel
  let auth: String
  /// As it was sent: a signature covers these bytes.
  let channelData: String?
  /// On presence channels.
  let member: PusherMember?
}

/// One connection of Pusher's protocol: what comes in, and what is to be done about it.
///
/// It does no I/O and has no clock.
struct PusherSession {
  enum Action {
    case send(PusherEvent)
    case end(PusherEnding)
    /// Decide, and call ``authorized(_:_:until:)`` or ``refused(_:_:)``.
    case authorize(PusherSubscribing)
    /// Begin with the channel's events, and call ``joined(_:_:)`` or ``refused(_:_:)``.
    case join(PusherChannel, PusherMember?)
    /// End the channel's events.
    case leave(PusherChannel)
    /// Read the newest message, and call ``didReadCache(_:_:_:)``.
    case readCache(PusherChannel, number: Int)
    /// Decide, and give the event to the others of the channel.
    case relay(PusherClientEvent)
  }

  private enum Cache {
    case none
    /// What comes before the read ends waits.
    case reading([PusherMessage])
    /// The subscriber has the messages up to this one.
    case read(through: Timetoken)
  }

  private struct Subscription {
    let channel: PusherChannel
    var principal: Principal
    /// When the right ends; nil for never.
    var end: Date?
    let member: PusherMember?
    let number: Int
    var cache = Cache.none
    var hasJoined = false
  }

  let socketID: String
  private let limits: PusherLimits
  private var frames: RequestRate
  private var clientEvents: RequestRate
  private var subscriptions: [String: Subscription] = [:]
  private var lastNumber = 0

  init(_ socketID: String, _ limits: PusherLimits) {
    self.socketID = socketID
    self.limits = limits
    frames = RequestRate(limits.frames)
    clientEvents = RequestRate(limits.clientEvents)
  }

  /// Whether a text is two numbers with a point, so that no signature of it is one of something else.
  static func isSocketID(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return text.utf8.count <= 64 && parts.count == 2
      && parts.allSatisfy { part in
        !part.isEmpty && part.allSatisfy { (0x30...0x39).contains($0) }
      }
  }

  var channelCount: Int { subscriptions.count }
  var channels: [PusherChannel] { subscriptions.values.map(\.channel) }

  /// When the first of the rights ends; nil for never.
  var nextEnd: Date? { subscriptions.values.compactMap(\.end).min() }

  // MARK: - Frames

  /// Takes a message of the client.
  mutating func receive(_ bytes: [UInt8], atNanoseconds now: UInt64) -> [Action] {
    guard frames.take(atNanoseconds: now) else { return [.end(.tooManyFrames)] }
    switch PusherCommand(bytes) {
    case .ping: return [.send(.pong)]
    case .pong: return []
    case .subscribe(let channel, let auth, let channelData):
      return subscribe(channel, auth, channelData)
    case .unsubscribe(let channel): return leave(channel)
    case .clientEvent(let name, let channel, let data):
      return relay(name, channel, data, now)
    case .unknown: return [Self.report("this server does not know the event")]
    case nil: return [Self.report("the message is not valid")]
    }
  }

  /// An error without a code: the connection stays, and no client takes it for the end.
  private static func report(_ message: String) -> Action {
    .send(.error(code: nil, message: message))
  }

  private func subscribe(_ text: String, _ auth: String, _ channelData: String?) -> [Action] {
    guard let channel = PusherChannel(text) else {
      return [Self.report("the name of the channel is not valid")]
    }
    do throws(PusherRefusal) {
      guard subscriptions[text] != nil || channelCount < limits.channelCount else {
        throw .limit("the connection has \(limits.channelCount) channels")
      }
      var member: PusherMember?
      if channel.kind == .presence {
        guard let channelData else { throw .unauthorized("channel_data is missing") }
        member = try PusherMember(channelData)
      }
      return [
        .authorize(
          PusherSubscribing(
            channel: channel, auth: auth, channelData: channelData, member: member))
      ]
    } catch {
      return [.send(.refused(channel: text, error))]
    }
  }

  private mutating func leave(_ text: String) -> [Action] {
    guard let subscription = subscriptions.removeValue(forKey: text) else { return [] }
    return [.leave(subscription.channel)]
  }

  // MARK: - Subscriptions

  /// Takes the permission for a subscription; a repeated one is answered again, and can have another right.
  ///
  /// A client that subscribes as another user leaves the channel first.
  mutating func authorized(
    _ request: PusherSubscribing, _ principal: Principal, until end: Date?
  ) -> [Action] {
    let text = request.channel.name.text
    if let member = subscriptions[text]?.member, let other = request.member,
      !member.id.utf8.elementsEqual(other.id.utf8)
    {
      return leave(text) + authorized(request, principal, until: end)
    }
    if subscriptions[text] == nil {
      lastNumber += 1
      subscriptions[text] = Subscription(
        channel: request.channel, principal: principal, end: end, member: request.member,
        number: lastNumber, cache: request.channel.isCache ? .reading([]) : .none)
    } else {
      subscriptions[text]?.principal = principal
      subscriptions[text]?.end = end
    }
    return [.join(request.channel, subscriptions[text]?.member)]
  }

  /// The channel's events begin.
  mutating func joined(_ channel: PusherChannel, _ roster: PusherRoster?) -> [Action] {
    let text = channel.name.text
    guard let subscription = subscriptions[text] else { return [] }
    subscriptions[text]?.hasJoined = true
    let answer = Action.send(.subscribed(channel: text, roster: roster))
    guard !subscription.hasJoined, channel.isCache else { return [answer] }
    return [answer, .readCache(channel, number: subscription.number)]
  }

  /// A subscription is refused; one that is there ends.
  mutating func refused(_ channel: PusherChannel, _ refusal: PusherRefusal) -> [Action] {
    leave(channel.name.text) + [.send(.refused(channel: channel.name.text, refusal))]
  }

  /// Decides again about subscriptions.
  ///
  /// - Parameters:
  ///   - isConcerned: whether a decision about this principal can differ.
  ///   - decide: whether the principal can still subscribe.
  mutating func recheck(
    _ isConcerned: (Principal, Date?) -> Bool, _ decide: (Principal, PusherChannel) -> Decision,
    _ refusal: (Decision, PusherChannel) -> PusherRefusal
  ) -> [Action] {
    var actions: [Action] = []
    for (text, subscription) in subscriptions
    where isConcerned(subscription.principal, subscription.end) {
      let decision = decide(subscription.principal, subscription.channel)
      if decision.isAllowed {
        subscriptions[text]?.end = decision.end
      } else {
        actions += refused(subscription.channel, refusal(decision, subscription.channel))
      }
    }
    return actions
  }

  // MARK: - Events

  /// Takes the next event of a channel.
  mutating func deliver(_ message: PusherMessage) -> [Action] {
    guard let subscription = subscriptions[message.channel] else { return [] }
    switch subscription.cache {
    case .none: break
    case .reading(var messages):
      guard messages.count < PusherLimits.waitingCount else { return [.end(.slow)] }
      messages.append(message)
      subscriptions[message.channel]?.cache = .reading(messages)
      return []
    case .read(let through): if message.timetoken <= through { return [] }
    }
    return send(message)
  }

  private func send(_ message: PusherMessage) -> [Action] {
    message.excludedSocketID == socketID ? [] : [.send(.message(message))]
  }

  /// The newest message of a cache channel was read; nil if there is none.
  mutating func didReadCache(
    _ channel: PusherChannel, number: Int, _ message: PusherMessage?
  ) -> [Action] {
    let text = channel.name.text
    guard let subscription = subscriptions[text], subscription.number == number,
      case .reading(let waiting) = subscription.cache
    else { return [] }
    subscriptions[text]?.cache = message.map { .read(through: $0.timetoken) } ?? .none
    let first = message.map { send($0) } ?? [.send(.cacheMiss(channel: text))]
    return first + waiting.flatMap { deliver($0) }
  }

  private mutating func relay(
    _ name: String, _ text: String, _ data: [UInt8], _ now: UInt64
  ) -> [Action] {
    guard let subscription = subscriptions[text], subscription.hasJoined else {
      return [Self.report("a client event needs a subscription to its channel")]
    }
    guard subscription.channel.takesClientEvents else {
      return [Self.report("client events need a private or presence channel")]
    }
    guard name.unicodeScalars.count <= PusherLimits.eventNameCount else {
      return [
        Self.report("the event's name has more than \(PusherLimits.eventNameCount) characters")
      ]
    }
    guard data.count <= PusherLimits.dataByteCount else {
      return [Self.report("the event has more than \(PusherLimits.dataByteCount) bytes")]
    }
    guard clientEvents.take(atNanoseconds: now) else {
      return [.send(.error(code: 4301, message: "the client sends too many events"))]
    }
    return [
      .relay(
        PusherClientEvent(
          channel: subscription.channel, name: name, data: data, userID: subscription.member?.id,
          principal: subscription.principal))
    ]
  }
}

/// An event of a client for the others of a channel.
struct PusherClientEvent: Sendable {
  let channel: PusherChannel
  let name: String
  let data: [UInt8]
  /// From the subscription to a presence channel, never from the event.
  let userID: String?
  /// Who sends it.
  let principal: Principal

  /// What the server notes about it: it is not stored, and its sender does not get it.
  func notes(excluding socketID: String) -> MessageNotes {
    var notes = MessageNotes()
    notes.kind = .signal
    notes.eventName = name
    notes.excludedSocketID = socketID
    notes.userID = userID
    notes.publisher = userID
    return notes
  }
}
