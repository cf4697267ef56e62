public import NIOCore

/// Gives a fuzzer access to the WebSockets of clients: a session that answers each message with itself.
@_spi(Testing)
public final class WebSocketProbe {
  /// What the session of a connection is told.
  public enum Event: Sendable, Equatable {
    /// A whole message.
    case message([UInt8])
    /// Too much waits to be sent.
    case slow
    /// Too much memory is held.
    case tooMuch
    /// No ping is answered.
    case silent
    /// The server stops.
    case stop
    /// The connection is gone.
    case end
  }

  /// What the session was told, in this order.
  public private(set) var events: [Event] = []
  private var transport: (any ClientTransport)?

  /// Makes a session.
  public init() {}

  /// How long a client can take to answer a close frame.
  public static var closeTime: Duration { WebSocketLimits().closeTime }

  /// Makes a channel a connection whose handshake is done.
  ///
  /// - Parameters:
  ///   - messageByteCount: the most bytes of a message.
  ///   - fragmentCount: the most fragments of a message.
  public func open(_ channel: any Channel, messageByteCount: Int, fragmentCount: Int) throws {
    var limits = WebSocketLimits()
    limits.messageByteCount = messageByteCount
    limits.fragmentCount = fragmentCount
    try WebSocketConnection.configure(
      channel.pipeline.syncOperations,
      WebSocketConnection(
        self, limits: limits, isProtected: true, from: LoginSource(nil), on: channel.eventLoop))
  }
}

extension WebSocketProbe: ClientSession {
  func begin(_ transport: any ClientTransport) { self.transport = transport }

  func receive(_ bytes: ByteBuffer) {
    events.append(.message(Array(bytes.readableBytesView)))
    transport?.send(Array(bytes.readableBytesView))
  }

  func clientIsSlow() { events.append(.slow) }
  func clientHoldsTooMuch() { events.append(.tooMuch) }
  func clientIsSilent() { events.append(.silent) }
  func serverStops() { events.append(.stop) }

  func end() {
    events.append(.end)
    transport = nil
  }
}
