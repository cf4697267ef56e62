internal import MessageCipher
internal import StrictJSON
internal import Synchronization

/// The events of one channel, until it is unsubscribed or refused, or its client is closed or gone.
///
/// It is for one task.
///
/// Events wait for the task, at most 1,000 of them or 16 MiB: then the client ends the sequence with an error, because it
/// can neither drop events silently nor keep all of them.
public final class PusherSubscription: AsyncSequence, Sendable {
  /// What the sequence gives.
  public typealias Element = PusherEvent

  /// The name of the channel.
  public let channel: String
  let kind: PusherChannelKind
  private let connection: PusherConnection
  private let configuration: PusherConfiguration
  private let inbox = Inbox<Item>()
  private let state = Mutex(State())

  private static let maximumWaitingCount = 1_000

  enum Item: Sendable {
    case status(PusherEvent.Status)
    case event(name: String, userID: String?, data: [UInt8])
    case memberAdded(PusherMember)
    case memberRemoved(String)
    case cacheMiss
    case end(MessagingClientError?)

    var byteCount: Int {
      switch self {
      case .event(let name, let userID, let data):
        name.utf8.count + (userID?.utf8.count ?? 0) + data.count
      case .memberAdded(let member): member.byteCount
      case .memberRemoved(let userID): userID.utf8.count
      case .status, .cacheMiss, .end: 0
      }
    }
  }

  private struct State {
    var members: [String: PusherMember] = [:]
    var memberByteCount = 0
    var userID: String?
    var channelKey: SharedSecret?
    var waitingCount = 0
    var nextFetch = ContinuousClock.now
    var waitingByteCount = 0
  }

  init(_ channel: String, _ configuration: PusherConfiguration, _ connection: PusherConnection) {
    self.channel = channel
    self.configuration = configuration
    self.connection = connection
    kind = PusherChannelKind(channel)
  }

  /// Who is present now, on a presence channel.
  public var members: [PusherMember] {
    state.withLock { $0.members.values.sorted { $0.userID < $1.userID } }
  }

  /// The client's own user, on a presence channel.
  public var userID: String? { state.withLock { $0.userID } }

  /// Sends an event to the other subscribers of a private or presence channel, which the server does not store.
  ///
  /// - Parameters:
  ///   - name: begins with `client-`.
  ///   - json: the JSON text of the data.
  public func trigger(_ name: String, json: [UInt8]) async throws(MessagingClientError) {
    guard name.utf8.starts(with: "client-".utf8), [.private, .presence].contains(kind) else {
      throw MessagingClientError(
        .invalidArgument, "'\(name)' is no client event of '\(channel)'",
        hint: "its name begins with 'client-', and it needs a private or presence channel")
    }
    guard let data = try? JSONReader.value(json) else {
      throw MessagingClientError(.invalidArgument, "the data of the event is no JSON")
    }
    try await connection.send(["event": .string(name), "channel": .string(channel), "data": data])
  }

  /// Ends the sequence, and tells the server.
  public func unsubscribe() async { await connection.remove(self) }

  /// Begins with the events that wait.
  public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

  /// The iteration of one task.
  public struct Iterator: AsyncIteratorProtocol {
    let subscription: PusherSubscription

    /// The next event; nil at the end.
    ///
    /// - Throws: `forbidden` if the server or the authorizer ends the subscription; `busy` if too many events wait;
    ///   `refused` if the server ends the connection for good.
    public mutating func next() async throws(MessagingClientError) -> PusherEvent? {
      try await subscription.next()
    }
  }

  // MARK: - What the client tells

  /// - Throws: ``ChannelDecryptionError`` for a key that is none.
  func authorized(_ authorization: ChannelAuthorization?) throws(ChannelDecryptionError) {
    guard let decryption = configuration.decryption, let text = authorization?.channelKey else {
      return
    }
    let key = SharedSecret(
      try text.withSecret { (text) throws(ChannelDecryptionError) in
        try decryption.key(sharedSecret: text)
      })
    state.withLock { $0.channelKey = key }
  }

  /// - Returns: as ``put(_:)``.
  func subscribed(_ members: [String: String], userID: String?) -> MessagingClientError? {
    state.withLock { state in
      state.userID = userID
      state.members = Dictionary(
        members.map { ($0.key, PusherMember(userID: $0.key, info: $0.value)) },
        uniquingKeysWith: { first, _ in first })
      state.memberByteCount = state.members.values.reduce(0) { $0 + $1.byteCount }
    }
    return put(.status(.subscribed))
  }

  /// - Returns: as ``put(_:)``.
  func memberAdded(_ member: PusherMember) -> MessagingClientError? {
    let isFull = state.withLock { state in
      let before = state.members.updateValue(member, forKey: member.userID)
      state.memberByteCount += member.byteCount - (before?.byteCount ?? 0)
      return state.memberByteCount > configuration.waitingByteCount
    }
    return isFull
      ? MessagingClientError(.invalidAnswer, "'\(channel)' has more members than a client keeps")
      : put(.memberAdded(member))
  }

  /// - Returns: as ``put(_:)``.
  func memberRemoved(_ userID: String) -> MessagingClientError? {
    state.withLock { state in
      let before = state.members.removeValue(forKey: userID)
      state.memberByteCount -= before?.byteCount ?? 0
    }
    return put(.memberRemoved(userID))
  }

  /// Adds what the application takes next.
  ///
  /// - Returns: the error with which the subscription must end, because too much waits.
  func put(_ item: Item) -> MessagingClientError? {
    let isFull = state.withLock { state in
      state.waitingCount += 1
      state.waitingByteCount += item.byteCount
      return state.waitingCount > Self.maximumWaitingCount
        || state.waitingByteCount > configuration.waitingByteCount
    }
    guard !isFull else {
      return MessagingClientError(
        .busy, "the application takes the events of '\(channel)' too slowly")
    }
    _ = inbox.put(item, byteCount: 0)
    return nil
  }

  func end(_ error: MessagingClientError?) { inbox.end(with: .end(error)) }

  // MARK: - Events

  private func next() async throws(MessagingClientError) -> PusherEvent? {
    guard let item = await inbox.next() else { return nil }
    if case .end(let error) = item {
      if let error { throw error }
      return nil
    }
    state.withLock { state in
      state.waitingCount -= 1
      state.waitingByteCount -= item.byteCount
    }
    switch item {
    case .status(let status): return .status(status)
    case .memberAdded(let member): return .memberAdded(member)
    case .memberRemoved(let userID): return .memberRemoved(userID: userID)
    case .cacheMiss: return .cacheMiss
    case .event(let name, let userID, let data):
      return .message(
        PusherMessage(
          channel: channel, name: name, userID: userID, content: await content(data)))
    case .end: return nil
    }
  }

  /// The data of an event, decrypted; here, so that events keep their order while a key is fetched.
  private func content(_ data: [UInt8]) async -> Result<[UInt8], any Error> {
    do {
      guard kind == .encrypted else { return .success(try decrypted(data)) }
      do {
        return .success(try decrypted(try open(data)))
      } catch let error as ChannelDecryptionError
        where error.code == .decryptionFailed && canFetchKey()
      {
        // The application can have another master key by now.
        try authorized(try await connection.authorize(channel))
        return .success(try decrypted(try open(data)))
      }
    } catch {
      return .failure(error)
    }
  }

  /// How often a key is fetched at most: forged events must not make the client ask the endpoint for each.
  private static let fetchInterval = Duration.seconds(10)

  private func canFetchKey() -> Bool {
    let now = ContinuousClock.now
    return state.withLock { state in
      guard state.nextFetch <= now else { return false }
      state.nextFetch = now + Self.fetchInterval
      return true
    }
  }

  private func open(_ data: [UInt8]) throws -> [UInt8] {
    guard let decryption = configuration.decryption,
      let key = state.withLock({ $0.channelKey })
    else {
      throw MessagingClientError(
        .invalidArgument, "the client has no key for the encrypted channel '\(channel)'",
        hint:
          "set the decryption of its configuration, and let the authorizer give the channel's key")
    }
    return try key.withSecret { try decryption.open(data, key: $0) }
  }

  private func decrypted(_ data: [UInt8]) throws -> [UInt8] {
    try configuration.cipher?.decrypt(data, channel: channel).bytes ?? data
  }
}

extension PusherMember {
  fileprivate var byteCount: Int { userID.utf8.count + (info?.utf8.count ?? 0) + 128 }
}
