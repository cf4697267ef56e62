internal import AccessControl
internal import MessagingQueue

/// Gives a fuzzer access to Pusher's messages and to the session of a connection.
@_spi(Testing)
public enum PusherProbe {
  /// What a client asks for.
  public enum Command: Sendable, Equatable {
    /// No answer is needed to a pong.
    case ping, pong
    /// The texts of a subscription; auth is empty if it is missing.
    case subscribe(channel: String, auth: String, channelData: String?)
    /// The end of a subscription.
    case unsubscribe(channel: String)
    /// An event for the others of a channel, with its data as text.
    case clientEvent(name: String, channel: String, data: [UInt8])
    /// An event that the server does not know.
    case unknown
  }

  /// An event that a server triggers.
  public struct Trigger: Sendable, Equatable {
    /// The channels without repetition.
    public let channels: [String]
    /// The name of the event.
    public let name: String
    /// The data as text.
    public let data: [UInt8]
    /// The connection that does not get it.
    public let socketID: String?
    /// The attributes that the answer has.
    public let attributes: [String]
  }

  /// The most channels of an event.
  public static var maximumChannelCount: Int { PusherTrigger.maximumChannelCount }
  /// The most events of a batch.
  public static var maximumBatchCount: Int { PusherTrigger.maximumBatchCount }
  /// The longest name of a channel, in bytes.
  public static var channelByteCount: Int { PusherChannel.maximumByteCount }
  /// The longest name of an event, in characters.
  public static var eventNameCount: Int { PusherLimits.eventNameCount }
  /// The largest data of an event, in bytes.
  public static var dataByteCount: Int { PusherLimits.dataByteCount }

  /// Reads a message of a client; nil for one that is not valid.
  public static func command(_ bytes: [UInt8]) -> Command? {
    switch PusherCommand(bytes) {
    case .ping: .ping
    case .pong: .pong
    case .subscribe(let channel, let auth, let channelData):
      .subscribe(channel: channel, auth: auth, channelData: channelData)
    case .unsubscribe(let channel): .unsubscribe(channel: channel)
    case .clientEvent(let name, let channel, let data):
      .clientEvent(name: name, channel: channel, data: data)
    case .unknown: .unknown
    case nil: nil
    }
  }

  /// Reads the body of `events` or `batch_events`; nil for one that is refused.
  public static func triggers(_ body: [UInt8], isBatch: Bool) -> [Trigger]? {
    guard let triggers = try? isBatch ? PusherTrigger.batch(body) : [PusherTrigger(body)] else {
      return nil
    }
    return triggers.map { trigger in
      let known: [(PusherAttributes, String)] = [
        (.userCount, "user_count"), (.subscriptionCount, "subscription_count"), (.cache, "cache"),
      ]
      return Trigger(
        channels: trigger.channels.map(\.text), name: trigger.name, data: trigger.data,
        socketID: trigger.socketID,
        attributes: known.filter { trigger.attributes.contains($0.0) }.map(\.1))
    }
  }

  /// The session of a connection, with its subscriptions decided and begun as the connection does it.
  public struct Session {
    /// What is done.
    public enum Action: Sendable, Equatable {
      /// JSON for the client.
      case send([UInt8])
      /// The end of the connection, with its code.
      case end(Int)
      /// The channel's events begin.
      case join(String)
      /// The channel's events end.
      case leave(String)
      /// The newest message is to be read.
      case readCache(String, number: Int)
      /// An event is given to the others.
      case relay(channel: String, name: String, data: [UInt8], userID: String?)
    }

    /// The `socket_id` of the connection.
    public static let socketID = "1.2"
    /// The most channels, so few that a short input reaches them.
    public static let channelCount = 3
    /// The most frames without a pause.
    public static let burstCount = 100
    /// Frames, and client events, of a second.
    public static let framesPerSecond = 10
    /// The most client events without a pause.
    public static let eventCount = 4

    /// Whether subscriptions are allowed.
    public var isAllowed = true
    /// Whether a channel has no room for a subscriber.
    public var isFull = false

    private var session: PusherSession
    private let application: ApplicationID

    /// Begins.
    public init() throws {
      application = try ApplicationID(1)
      var limits = PusherLimits()
      limits.channelCount = Self.channelCount
      limits.frames.requestsPerSecond = Self.framesPerSecond
      limits.frames.burstCount = Self.burstCount
      limits.clientEvents.requestsPerSecond = Self.framesPerSecond
      limits.clientEvents.burstCount = Self.eventCount
      session = PusherSession(Self.socketID, limits)
    }

    /// The channels with a subscription.
    public var channels: [String] { session.channels.map(\.name.text) }

    /// Takes a message of the client.
    public mutating func receive(_ bytes: [UInt8], atNanoseconds now: UInt64) -> [Action] {
      perform(session.receive(bytes, atNanoseconds: now))
    }

    /// Takes the next event of a channel, whose data is its number in the log.
    ///
    /// - Parameters:
    ///   - isExcluded: whether this connection has sent it.
    ///   - isPresence: whether it is none of a client.
    public mutating func deliver(
      _ number: Int64, of channel: String, isExcluded: Bool, isPresence: Bool
    ) -> [Action] {
      Self.message(number, channel, isExcluded, isPresence).map { perform(session.deliver($0)) }
        ?? []
    }

    /// The newest message of a cache channel was read; nil if there is none.
    public mutating func didReadCache(
      _ channel: String, number: Int, _ newest: Int64?
    ) -> [Action] {
      guard let name = PusherChannel(channel) else { return [] }
      return perform(
        session.didReadCache(
          name, number: number, newest.flatMap { Self.message($0, channel, false, false) }))
    }

    /// Decides again about all subscriptions.
    public mutating func recheck(keeping isKept: (String) -> Bool) -> [Action] {
      perform(
        session.recheck(
          { _, _ in true },
          { _, channel in isKept(channel.name.text) ? .allowed(.endpoint) : .refused(.noGrant) },
          { _, _ in .forbidden("no grant") }))
    }

    private static func message(
      _ number: Int64, _ channel: String, _ isExcluded: Bool, _ isPresence: Bool
    ) -> PusherMessage? {
      var notes = MessageNotes()
      if isExcluded { notes.excludedSocketID = socketID }
      if isPresence { notes.kind = .presence }
      guard let name = try? Channel("fuzz/\(channel)"),
        let place = Timetoken(rawValue: 17_000_000_000_000_000 + number)
      else { return nil }
      return PusherMessage(
        LogMessage(
          timetoken: place, channel: name, payload: Array(String(number).utf8),
          headers: notes.headers))
    }

    private mutating func perform(_ actions: [PusherSession.Action]) -> [Action] {
      actions.flatMap { perform($0) }
    }

    private mutating func perform(_ action: PusherSession.Action) -> [Action] {
      switch action {
      case .send(let event): return [.send(event.bytes)]
      case .end(let ending): return [.end(Int(ending.code))]
      case .authorize(let request):
        return perform(
          isAllowed
            ? session.authorized(
              request, .subscriber(request.channel.name, of: application), until: nil)
            : session.refused(request.channel, .unauthorized("no signature")))
      case .join(let channel, let member):
        guard !isFull else { return perform(session.refused(channel, .limit("full"))) }
        var roster = PusherRoster()
        if let member { _ = try? roster.add(member) }
        return [.join(channel.name.text)]
          + perform(session.joined(channel, member == nil ? nil : roster))
      case .leave(let channel): return [.leave(channel.name.text)]
      case .readCache(let channel, let number):
        return [.readCache(channel.name.text, number: number)]
      case .relay(let event):
        return [
          .relay(
            channel: event.channel.name.text, name: event.name, data: event.data,
            userID: event.userID)
        ]
      }
    }
  }
}
