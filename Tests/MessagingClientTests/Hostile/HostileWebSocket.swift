import Foundation
import Testing
import VaultCrypto

@testable import MessagingClient

/// What a hostile server says in the place of a WebSocket's handshake, and behind it.
enum HostileWebSocket {
  /// The accept that belongs to the key of a request.
  static func accept(_ head: String) throws -> String {
    let line = head.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }
    let key = line?.dropFirst("Sec-WebSocket-Key: ".count) ?? ""
    let text = Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
    return Data(try LegacyDigest.sha1(text.span.bytes)).base64EncodedString()
  }

  /// An answer that switches protocols; a header that is given replaces the right one.
  static func handshake(_ head: String, _ changes: [String: String?] = [:]) throws -> [UInt8] {
    var headers: [String: String?] = [
      "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Accept": try accept(head),
    ]
    headers.merge(changes) { $1 }
    let lines = headers.compactMap { name, value in value.map { "\(name): \($0)\r\n" } }.sorted()
    return Array("HTTP/1.1 101 Switching Protocols\r\n\(lines.joined())\r\n".utf8)
  }

  /// A frame of a server.
  static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
    switch payload.count {
    case ..<126: [first, UInt8(payload.count)] + payload
    case ..<65536: [first, 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload
    default:
      [first, 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        + payload
    }
  }

  static func text(_ text: String) -> [UInt8] { frame(0x81, Array(text.utf8)) }

  /// A close frame.
  static func close(_ code: UInt16, _ reason: String = "") -> [UInt8] {
    frame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8))
  }

  /// Opens a WebSocket, and gives what comes until its end.
  static func events(
    _ server: HostileServer, messageByteCount: Int = 1 << 16, timeout: Duration = .seconds(2)
  ) async throws -> [WebSocketEvent] {
    let socket = try await Transport.to(server.url)
      .openWebSocket(
        RequestTarget(path: "/w"), subprotocols: ["v1", "v2"], messageByteCount: messageByteCount,
        timeout: timeout)
    defer { socket.drop() }
    var events: [WebSocketEvent] = []
    while let event = await socket.next() {
      events.append(event)
      if case .closed = event { break }
    }
    return events
  }
}
