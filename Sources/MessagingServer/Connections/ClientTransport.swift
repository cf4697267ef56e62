internal import NIOCore

/// A lasting connection of a client, as its session uses it: a WebSocket, or a stream of bytes.
///
/// Only for use on its event loop.
protocol ClientTransport: AnyObject {
  var eventLoop: any EventLoop { get }
  /// Whether no one between the client and this server can read or change what passes.
  var isProtected: Bool { get }
  /// Where the client is, to count failed logins by.
  var source: LoginSource { get }
  /// Whether the system has taken everything that was sent.
  var isIdle: Bool { get }
  /// What the connection holds; nil if no one counts it.
  var memory: MemoryAccount? { get }

  /// Sends one message of a WebSocket, or bytes of a stream.
  func send(_ bytes: [UInt8])

  /// Sends what its session bounds by itself, so that it does not count as too much for a slow client.
  ///
  /// - Parameter whenSent: called on the event loop when the system has taken the bytes, unless the connection is lost.
  func send(_ bytes: [UInt8], whenSent: @escaping () -> Void)

  /// Stops reading, or reads on: a session that cannot take more lets TCP slow its client down.
  func setReading(_ isReading: Bool)

  /// Closes behind what was sent.
  ///
  /// - Parameters:
  ///   - code: the close code of a WebSocket (RFC 6455, 7.4, or the protocol's own).
  ///   - reason: for people, at most 123 bytes.
  func close(_ code: UInt16, _ reason: String)
}

/// What a protocol does with a lasting connection, on its event loop.
protocol ClientSession: AnyObject, SendableMetatype {
  func begin(_ transport: any ClientTransport)

  /// Takes a message of a WebSocket, or the next bytes of a stream.
  func receive(_ bytes: ByteBuffer)

  /// The system has taken what had to wait for the client.
  func clientHasRead()

  /// More waits to be sent than the connection's limit, or for too long: the session closes it.
  func clientIsSlow()

  /// The connection holds too much of the server's memory: the session closes it.
  func clientHoldsTooMuch()

  /// A WebSocket client answers no ping: the session closes it.
  func clientIsSilent()

  /// The server stops: the session tells its client and closes.
  func serverStops()

  /// The connection is gone; called once, whichever side closed it.
  func end()
}

extension ClientSession {
  func clientHasRead() {}
}
