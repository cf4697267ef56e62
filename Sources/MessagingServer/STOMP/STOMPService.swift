internal import AccessControl
internal import NIOCore

/// Serves STOMP, over streams and WebSockets.
struct STOMPService: Sendable {
  private static let path = Array("/stomp".utf8)

  let gate: HomeGate
  let operations: ServerOperations
  var limits = STOMPLimits()

  init(_ gate: HomeGate, _ operations: ServerOperations) {
    self.gate = gate
    self.operations = operations
  }

  /// Makes the session of a connection, on its event loop.
  @Sendable func makeSession() -> any ClientSession { STOMPConnection(self) }

  /// Opens a WebSocket if the request asks for one of STOMP; false if it does not.
  func answers(_ exchange: HTTPExchange) -> Bool {
    let request = exchange.request
    guard WebSocketHandshake.isWanted(by: request),
      request.target.prefix(while: { $0 != UInt8(ascii: "?") }).elementsEqual(Self.path)
    else { return false }
    exchange.describe(.stompConnection)
    guard let handshake = WebSocketHandshake(request) else {
      exchange.answer(HTTPResponse(400, "the WebSocket handshake is not valid"))
      return true
    }
    let offered = STOMPVersion.allCases.map(\.subprotocol).filter(handshake.subprotocols.contains)
    var webSocketLimits = WebSocketLimits()
    // Room for a frame that is too large, so that its client gets an ERROR frame in most cases.
    webSocketLimits.messageByteCount = 2 * limits.frames.bodyByteCount
    exchange.open(
      WebSocketOpening(
        handshake: handshake, subprotocol: offered.last, limits: webSocketLimits,
        makeSession: makeSession))
    return true
  }
}
