internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import NIOCore
internal import StrictJSON

/// Answers Pusher's two interfaces: WebSockets of clients, and HTTP of servers.
///
/// It translates into the operations that all protocols share.
struct PusherService: Sendable {
  /// What a client can ask for in the handshake; none must.
  private static let subprotocol = "pusher-channels-protocol-7"

  let gate: HomeGate
  var limits = PusherLimits()
  /// How long a new connection waits for an unlock.
  var sealedTime = Duration.seconds(5)

  /// The clock that limits how fast clients can send.
  private let uptime: @Sendable () -> NIODeadline

  init(_ gate: HomeGate, uptime: @escaping @Sendable () -> NIODeadline = { .now() }) {
    self.gate = gate
    self.uptime = uptime
  }

  var uptimeNanoseconds: UInt64 { uptime().uptimeNanoseconds }

  /// Two numbers that no one can guess: SDKs accept no other form.
  func makeSocketID() -> String {
    "\(UInt32.random(in: 1...UInt32.max)).\(UInt64.random(in: 1...999_999_999_999))"
  }

  /// Answers a request now or later; false if it is none of Pusher's.
  func answers(_ exchange: HTTPExchange) -> Bool {
    let request = exchange.request
    let raw = RawRequest(method: request.method, target: request.target, body: request.body)
    if WebSocketHandshake.isWanted(by: request) {
      guard let connecting = PusherConnecting(raw) else { return false }
      open(exchange, connecting)
      return true
    }
    if let authorizing = PusherAuthorizing(raw) {
      answer(exchange, authorizing)
      return true
    }
    guard request.method != "OPTIONS", let path = PusherPath(raw) else { return false }
    answer(exchange, raw, path)
    return true
  }

  private func open(_ exchange: HTTPExchange, _ connecting: PusherConnecting) {
    exchange.describe(.pusherConnection)
    guard let handshake = WebSocketHandshake(exchange.request) else {
      return exchange.answer(.pusher(400, "the WebSocket handshake is not valid"))
    }
    if let application = gate.home?.directory.application(subscribeKey: connecting.key) {
      exchange.describe(application.id)
    }
    gate.logIn(exchange, sealedTime: sealedTime) { home in
      home.directory.application(subscribeKey: connecting.key)
    } open: { login in
      exchange.open(
        WebSocketOpening(
          handshake: handshake,
          subprotocol: handshake.subprotocols.contains(Self.subprotocol) ? Self.subprotocol : nil,
          limits: WebSocketLimits(), makeSession: { PusherConnection(connecting, login, self) }))
    }
  }
}

/// How a client connects: `/app/KEY?protocol=7`, also below another path.
struct PusherConnecting: Sendable, Equatable {
  /// The versions of the protocol; clients of all three are in use.
  static let versions = 5...7

  let key: String
  /// The parameter `protocol`; nil if it is missing.
  let version: String?

  /// Nil for another path.
  init?(_ request: RawRequest) {
    let segments = request.path.split(separator: UInt8(ascii: "/")).suffix(2)
    guard segments.count == 2, segments.first?.elementsEqual("app".utf8) == true,
      let key = segments.last
    else { return nil }
    self.key = String(decoding: PercentEncoding.decode(key), as: UTF8.self)
    version = request.value("protocol").map { String(decoding: $0, as: UTF8.self) }
  }

  /// - Throws: ``PusherEnding`` for a version that this server does not have.
  func checkVersion() throws(PusherEnding) {
    guard let version, !version.isEmpty else { throw .noVersion }
    guard version.utf8.count <= 9, version.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Int(version)
    else { throw .malformedVersion }
    guard Self.versions.contains(number) else { throw .unsupportedVersion }
  }
}

extension HTTPResponse {
  /// An answer of the HTTP API: SDKs read nothing but a JSON object.
  static func pusher(_ status: Int = 200, json: JSONValue) -> HTTPResponse {
    var response = HTTPResponse(status, json: json)
    response.contentType = "application/json"
    // A client that must wait is told how long.
    if status == 429 || status == 503 { response.retryAfter = 1 }
    return response
  }

  /// A refusal.
  static func pusher(_ status: Int, _ message: String) -> HTTPResponse {
    .pusher(status, json: .object([JSONMember("error", .string(message))]))
  }
}
