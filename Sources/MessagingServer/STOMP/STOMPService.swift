internal import AccessControl
internal import ApplicationStore
internal import NIOCore

/// Serves STOMP, over streams and WebSockets.
struct STOMPService: Sendable {
  let gate: HomeGate
  let operations: ServerOperations
  var limits = STOMPLimits()
  /// Whose web pages can open a WebSocket, beside those of this server's own origin.
  private let origins: Set<WebOrigin>

  init(_ gate: HomeGate, _ operations: ServerOperations, origins: Set<WebOrigin> = []) {
    self.gate = gate
    self.operations = operations
    self.origins = origins
  }

  /// Makes the session of a connection, on its event loop.
  @Sendable func makeSession() -> any ClientSession { STOMPConnection(self, nil) }

  /// Opens a WebSocket if the request asks for one of STOMP; false if it does not.
  func answers(_ exchange: HTTPExchange) -> Bool {
    let request = exchange.request
    guard WebSocketHandshake.isWanted(by: request), let path = STOMPPath(request.target) else {
      return false
    }
    exchange.describe(.stompConnection)
    guard !request.isFromOtherOrigin(than: origins) else {
      exchange.answer(.pusher(403, "web pages of this origin cannot use STOMP"))
      return true
    }
    guard let handshake = WebSocketHandshake(request) else {
      exchange.answer(HTTPResponse(400, "the WebSocket handshake is not valid"))
      return true
    }
    let offered = STOMPVersion.allCases.map(\.subprotocol).filter(handshake.subprotocols.contains)
    var webSocketLimits = WebSocketLimits()
    // Room for a frame that is too large, so that its client gets an ERROR frame in most cases.
    webSocketLimits.messageByteCount = 2 * limits.frames.bodyByteCount
    let open: @Sendable (STOMPHandshake?) -> Void = { [webSocketLimits] client in
      exchange.open(
        WebSocketOpening(
          handshake: handshake, subprotocol: offered.last, limits: webSocketLimits,
          makeSession: { STOMPConnection(self, client) }))
    }
    guard let name = path.application else {
      if request.authorization == nil {
        open(nil)
      } else {
        exchange.answer(.pusher(400, "credentials need the application: /stomp/APPLICATION"))
      }
      return true
    }
    if let home = gate.home, home.directory.application(named: name) == nil,
      case .token = request.authorization
    {
      // What an application without users answers to a wrong token: the rest is said to CONNECT.
      exchange.answer(LoginRefusal.wrongToken(for: name, isProtected: request.isProtected).response)
      return true
    }
    gate.logIn(exchange) { home in
      home.directory.application(named: name)
    } open: { login in
      open(STOMPHandshake(application: name, login: login))
    }
    return true
  }
}

/// What a WebSocket handshake says of its client, at `/stomp/APPLICATION`.
struct STOMPHandshake: Sendable {
  let application: String
  let login: HandshakeLogin
}

/// The path of a WebSocket: `/stomp`, or `/stomp/APPLICATION`.
private struct STOMPPath {
  /// Nil if the frame CONNECT names it.
  let application: String?

  /// Nil for another path.
  init?(_ target: [UInt8]) {
    let segments = target.prefix { $0 != UInt8(ascii: "?") }.dropFirst()
      .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard (1...2).contains(segments.count), segments[0].elementsEqual("stomp".utf8) else {
      return nil
    }
    application = segments.count == 2 ? String(decoding: segments[1], as: UTF8.self) : nil
  }
}
