internal import CNATS
internal import Glibc
internal import Logging
internal import Replication
internal import Synchronization

/// A connection of libnats, which reconnects by itself, with its JetStream context.
///
/// Its handles are destroyed with it, and its subscriptions when it is closed for good; ``close()`` lets calls that wait
/// return before that.
@safe final class BrokerConnection: @unchecked Sendable {
  // Sendable because libnats locks each of its objects.
  let handle: OpaquePointer
  let context: OpaquePointer
  private let events: ConnectionEvents
  /// How long a call of JetStream's interface waits.
  static let timeoutMilliseconds: Int64 = 3_000

  private init(handle: OpaquePointer, context: OpaquePointer, _ events: ConnectionEvents) {
    unsafe self.handle = unsafe handle
    unsafe self.context = unsafe context
    self.events = events
  }

  deinit {
    unsafe natsConnection_Close(handle)
    unsafe jsCtx_Destroy(context)
    unsafe natsConnection_Destroy(handle)
  }

  /// Destroys a subscription when the connection is closed for good.
  ///
  /// libnats 3.4 delivers to a subscription without holding it: `natsConn_processMsg`. One that is destroyed earlier can be
  /// used after it is freed.
  func keep(_ subscription: OpaquePointer) { unsafe events.keep(subscription) }

  /// Lets all calls return, and takes no more.
  func close() { unsafe natsConnection_Close(handle) }

  /// Whether it is closed for good: here, or by libnats when a broker has refused the nkey twice.
  var isClosed: Bool { unsafe natsConnection_IsClosed(handle) }

  /// How often it was lost and made again.
  ///
  /// - Throws: `noAnswer` if there is no memory.
  func reconnectCount() throws(LogError) -> UInt64 {
    var statistics: OpaquePointer?
    try check(unsafe natsStatistics_Create(&statistics), "looking at the connection")
    defer { unsafe natsStatistics_Destroy(statistics) }
    var count: UInt64 = 0
    try check(unsafe natsConnection_GetStats(handle, statistics), "looking at the connection")
    try check(
      unsafe natsStatistics_GetCounts(statistics, nil, nil, nil, nil, &count),
      "looking at the connection")
    return count
  }

  /// Throws unless a call of JetStream's interface has succeeded; call it on the same thread.
  func requireAnswer(
    _ status: natsStatus, _ operation: String, _ code: jsErrCode = jsErrCode(0)
  ) throws(LogError) {
    if status == NATS_TIMEOUT,
      events.wasRefused(within: .milliseconds(2 * Self.timeoutMilliseconds))
    {
      // A broker answers only over another way what it does not permit.
      throw LogError(NATS_NOT_PERMITTED, during: operation)
    }
    guard status == NATS_OK else { throw LogError(status, during: operation, code) }
  }

  /// The libnats of the process: never closed, because its threads serve all connections.
  private static let library: natsStatus = nats_Open(-1)

  /// Connects to the first broker that answers.
  ///
  /// - Parameters:
  ///   - user: the node's nkey; nil for brokers that ask for none.
  ///   - inboxes: the subjects of answers begin with it.
  static func open(
    _ settings: BrokerSettings, user: BrokerUser?, inboxes: String, logger: Logger
  ) throws(LogError) -> BrokerConnection {
    try settings.check()
    guard library == NATS_OK else { throw LogError(library, during: "starting libnats") }
    var options: OpaquePointer?
    try check(unsafe natsOptions_Create(&options), "preparing a connection")
    defer { unsafe natsOptions_Destroy(options) }
    let events = ConnectionEvents(user, logger)
    let closure = unsafe Unmanaged.passRetained(events)
    var isConnected = false
    // Afterwards the last callback releases it.
    defer { if !isConnected { unsafe closure.release() } }
    try unsafe configure(options, settings, inboxes, closure.toOpaque(), events)
    var handle: OpaquePointer?
    try check(unsafe natsConnection_Connect(&handle, options), "connecting to the brokers")
    isConnected = true
    var context: OpaquePointer?
    var jetStream = unsafe jsOptions()
    unsafe jsOptions_Init(&jetStream)
    unsafe jetStream.Wait = timeoutMilliseconds
    let status = unsafe natsConnection_JetStream(&context, handle, &jetStream)
    guard status == NATS_OK, let handle = unsafe handle, let context = unsafe context else {
      unsafe natsConnection_Destroy(handle)
      throw LogError(status, during: "using JetStream")
    }
    let connection = unsafe BrokerConnection(handle: handle, context: context, events)
    guard unsafe natsConnection_GetMaxPayload(handle) >= Int64(SealedRecord.mostBytes) else {
      throw LogError(
        .invalidSettings, "the brokers take fewer bytes than a record can have",
        hint: "set max_payload to 1MB")
    }
    return connection
  }

  private static func configure(
    _ options: OpaquePointer?, _ settings: BrokerSettings, _ inboxes: String,
    _ closure: UnsafeMutableRawPointer, _ events: ConnectionEvents
  ) throws(LogError) {
    func set(_ status: natsStatus) throws(LogError) { try check(status, "preparing a connection") }
    try unsafe setServers(options, settings.addresses)
    try set(unsafe natsOptions_SetName(options, "datavaultd"))
    try set(unsafe natsOptions_SetCustomInboxPrefix(options, inboxes))
    try set(unsafe natsOptions_SetTimeout(options, 2_000))
    // Without it, a broker that takes no bytes blocks the writer for ever, and with it the pings that would notice.
    try set(unsafe natsOptions_SetWriteDeadline(options, 3_000))
    // Only this refuses a broker without TLS: an address or an authority alone would go on in the clear.
    if settings.demandsTLS { try set(unsafe natsOptions_SetSecure(options, true)) }
    if let authority = settings.authority {
      try set(unsafe natsOptions_SetCATrustedCertificates(options, authority))
    }
    if let name = events.user?.name {
      try set(unsafe natsOptions_SetNKey(options, name, signNonce, closure))
    }
    // A broker that stops without a word is left after 4 seconds.
    try set(unsafe natsOptions_SetPingInterval(options, 2_000))
    try set(unsafe natsOptions_SetMaxPingsOut(options, 1))
    try set(unsafe natsOptions_SetMaxReconnect(options, -1))
    try set(unsafe natsOptions_SetReconnectWait(options, 250))
    try set(unsafe natsOptions_SetReconnectJitter(options, 100, 100))
    // Nothing is kept for later: the outbox sends again.
    try set(unsafe natsOptions_SetReconnectBufSize(options, 1))
    try set(unsafe natsOptions_SetFailRequestsOnDisconnect(options, true))
    try set(unsafe natsOptions_SetSendAsap(options, true))
    try set(unsafe natsOptions_SetErrorHandler(options, noteError, closure))
    try set(unsafe natsOptions_SetDisconnectedCB(options, noteDisconnection, closure))
    try set(unsafe natsOptions_SetReconnectedCB(options, noteReconnection, closure))
    try set(unsafe natsOptions_SetClosedCB(options, noteClosing, closure))
  }

  private static func setServers(
    _ options: OpaquePointer?, _ addresses: [String]
  ) throws(LogError) {
    var texts = unsafe addresses.map { unsafe UnsafePointer<CChar>?(strdup($0)) }
    defer {
      for index in addresses.indices { unsafe free(UnsafeMutablePointer(mutating: texts[index])) }
    }
    let status = unsafe natsOptions_SetServers(options, &texts, Int32(addresses.count))
    try check(status, "preparing a connection")
  }

  /// The URL of the broker that is connected; empty without one.
  func brokerURL() -> String {
    var buffer = [CChar](repeating: 0, count: 512)
    _ = unsafe natsConnection_GetConnectedUrl(handle, &buffer, buffer.count)
    let url = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return String(decoding: url, as: UTF8.self)
  }
}

/// Throws unless a call has succeeded; call it on the same thread.
func check(
  _ status: natsStatus, _ operation: String, _ code: jsErrCode = jsErrCode(0)
) throws(LogError) {
  guard status == NATS_OK else { throw LogError(status, during: operation, code) }
}

// MARK: - What libnats calls

/// The nkey with which connections log in.
final class BrokerUser: Sendable {
  private let key: NATSUserKey
  let name: String

  init(_ key: consuming NATSUserKey) {
    name = key.publicKey.text
    self.key = key
  }

  func sign(_ nonce: [UInt8]) -> [UInt8]? { try? key.sign(nonce) }
}

/// What the callbacks of a connection need; released by the last of them.
final class ConnectionEvents: Sendable {
  fileprivate let user: BrokerUser?
  fileprivate let logger: Logger
  private let refusedAt = Mutex<ContinuousClock.Instant?>(nil)
  private let subscriptions = Mutex<[Subscription]>([])

  fileprivate init(_ user: BrokerUser?, _ logger: Logger) {
    self.user = user
    self.logger = logger
  }

  // After the last callback no thread of the connection finds a subscription.
  deinit {
    subscriptions.withLock { subscriptions in
      for subscription in subscriptions { unsafe natsSubscription_Destroy(subscription.handle) }
    }
  }

  // Sendable because libnats locks each of its objects.
  @safe private struct Subscription: @unchecked Sendable {
    let handle: OpaquePointer
  }

  fileprivate func keep(_ subscription: OpaquePointer) {
    let subscription = unsafe Subscription(handle: subscription)
    subscriptions.withLock { $0.append(subscription) }
  }

  fileprivate func note(_ status: natsStatus) {
    let text = unsafe String(cString: natsStatus_GetText(status))
    logger.warning("the brokers: \(text)")
    if status == NATS_NOT_PERMITTED { refusedAt.withLock { $0 = .now } }
  }

  /// Whether a broker has refused something lately.
  fileprivate func wasRefused(within limit: Duration) -> Bool {
    refusedAt.withLock { $0.map { ContinuousClock.now - $0 < limit } ?? false }
  }
}

private func events(_ closure: UnsafeMutableRawPointer?) -> ConnectionEvents? {
  unsafe closure.map { unsafe Unmanaged.fromOpaque($0).takeUnretainedValue() }
}

private let signNonce: natsSignatureHandler = { _, signature, length, nonce, closure in
  guard let nonce = unsafe nonce,
    let bytes = unsafe events(closure)?.user?.sign(Array(String(cString: nonce).utf8)),
    // libnats frees it.
    let copy = unsafe malloc(bytes.count)?.assumingMemoryBound(to: UInt8.self)
  else { return NATS_ERR }
  for (index, byte) in bytes.enumerated() { unsafe copy[index] = byte }
  unsafe signature?.pointee = unsafe copy
  unsafe length?.pointee = Int32(bytes.count)
  return NATS_OK
}

private let noteError: natsErrHandler = { _, _, status, closure in
  unsafe events(closure)?.note(status)
}

private let noteDisconnection: natsConnectionHandler = { _, closure in
  unsafe events(closure)?.logger.warning("the connection to the brokers is lost")
}

private let noteReconnection: natsConnectionHandler = { _, closure in
  unsafe events(closure)?.logger.notice("connected to the brokers again")
}

private let noteClosing: natsConnectionHandler = { _, closure in
  guard let closure = unsafe closure else { return }
  unsafe Unmanaged<ConnectionEvents>.fromOpaque(closure).release()
}
