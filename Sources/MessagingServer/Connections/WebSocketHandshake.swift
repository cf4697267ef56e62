internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import VaultCrypto

/// A client's request to open a WebSocket, once it is found valid (RFC 6455, 4.2.1).
struct WebSocketHandshake: Sendable {
  /// The protocols that the client offers, in its order.
  let subprotocols: [String]
  private let key: String

  /// Whether a request asks for a WebSocket, valid or not.
  static func isWanted(by request: HTTPRequest) -> Bool {
    request.method == "GET"
      && request.headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
  }

  /// Nil for a handshake that is not valid.
  init?(_ request: HTTPRequest) {
    let headers = request.headers
    guard Self.isWanted(by: request), headers["sec-websocket-version"] == ["13"],
      headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" }),
      headers["sec-websocket-key"].count == 1,
      let key = headers.first(name: "sec-websocket-key"),
      Data(base64Encoded: key)?.count == 16
    else { return nil }
    self.key = key
    subprotocols = headers[canonicalForm: "sec-websocket-protocol"].map(String.init)
  }

  /// What proves to the client that its request was read as a handshake.
  ///
  /// - Throws: an error of OpenSSL.
  var accept: String {
    get throws(CryptoError) {
      let text = Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
      return unsafe Data(try LegacyDigest.sha1(text.span.bytes)).base64EncodedString()
    }
  }

  /// The answer that opens the WebSocket.
  func response(_ subprotocol: String?) throws(CryptoError) -> String {
    let chosen = subprotocol.map { "Sec-WebSocket-Protocol: \($0)\r\n" } ?? ""
    return """
      HTTP/1.1 101 Switching Protocols\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Accept: \(try accept)\r
      \(chosen)\r\n
      """
  }
}
