internal import CNATS
internal import Glibc
internal import Logging
internal import Replication

/// A connection of libnats, which reconnects by itself, with its JetStream context.
///
/// Its handles are destroyed with it; ``close()`` lets calls that wait return before that.
@safe final class BrokerConnection: @unchecked Sendable {
  // Sendable because libnats locks each of its objects.
  let handle: OpaquePointer
  let context: OpaquePointer
  /// How long a call of JetStream's interface waits, in milliseconds.
  static let patience: Int64 = 3_000

  private init(handle: OpaquePointer, context: OpaquePointer) {
    unsafe self.handle = unsafe handle
    unsafe self.context = unsafe context
  }

  deinit {
    unsafe natsConnection_Close(handle)
    unsafe jsCtx_Destroy(context)
    unsafe natsConnection_Destroy(handle)
  }

  /// Lets all calls return, and takes no more.
  func close() { unsafe natsConnection_Close(handle) }

  /// The libnats of the process: never closed, because its threads serve all connections.
  private static let library: natsStatus = nats_Open(-1)

  /// Connects to the first broker that answers.
  ///
  /// - Parameter user: the node's nkey; nil for brokers that ask for none.
  static func open(
    _ settings: BrokerSettings, user: BrokerUser?, logger: Logger
  ) throws(LogError) -> BrokerConnection {
    try settings.check()
    guard library == NATS_OK else { throw LogError(library, during: "starting libnats") }
    var options: OpaquePointer?
    try check(unsafe natsOptions_Create(&options), "preparing a connection")
    defer { unsafe natsOptions_Destroy(options) }
    let events = unsafe Unmanaged.passRetained(ConnectionEvents(user, logger))
    var isConnected = false
    // Afterwards the last callback releases it.
    defer { if !isConnected { unsafe events.release() } }
    try unsafe configure(options, settings, events.toOpaque(), events.takeUnretainedValue())
    var handle: OpaquePointer?
    try check(unsafe natsConnection_Connect(&handle, options), "connecting to the brokers")
    isConnected = true
    var context: OpaquePointer?
    var jetStream = unsafe jsOptions()
    unsafe jsOptions_Init(&jetStream)
    unsafe jetStream.Wait = patience
    unsafe jetStream.PublishAsync.MaxPending = 256
    unsafe jetStream.PublishAsync.StallWait = patience
    unsafe jetStream.PublishAsync.ErrHandler = { _, _, _ in
      // What was not stored is missed when it is not read back.
    }
    let status = unsafe natsConnection_JetStream(&context, handle, &jetStream)
    guard status == NATS_OK, let handle = unsafe handle, let context = unsafe context else {
      unsafe natsConnection_Destroy(handle)
      throw LogError(status, during: "using JetStream")
    }
    let connection = unsafe BrokerConnection(handle: handle, context: context)
    guard unsafe natsConnection_GetMaxPayload(handle) >= Int64(SealedRecord.mostBytes) else {
      throw LogError(
        .invalidSettings, "the brokers take fewer bytes than a record can have",
        hint: "set max_payload to 1MB")
    }
    return connection
  }

  private static func configure(
    _ options: OpaquePointer?, _ settings: BrokerSettings, _ closure: UnsafeMutableRawPointer,
    _ events: ConnectionEvents
  ) throws(LogError) {
    func set(_ status: natsStatus) throws(LogError) { try check(status, "preparing a connection") }
    try unsafe setServers(options, settings.addresses)
    try set(unsafe natsOptions_SetName(options, "datavaultd"))
    try set(unsafe natsOptions_SetTimeout(options, 2_000))
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

  /// The broker that is connected.
  func broker() -> (url: String, isConnected: Bool) {
    var buffer = [CChar](repeating: 0, count: 512)
    let status = unsafe natsConnection_GetConnectedUrl(handle, &buffer, buffer.count)
    let url = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return (String(decoding: url, as: UTF8.self), status == NATS_OK)
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
private final class ConnectionEvents: Sendable {
  let user: BrokerUser?
  let logger: Logger

  init(_ user: BrokerUser?, _ logger: Logger) {
    self.user = user
    self.logger = logger
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
  let text = unsafe String(cString: natsStatus_GetText(status))
  unsafe events(closure)?.logger.warning("the brokers: \(text)")
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
