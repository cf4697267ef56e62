import Foundation
import Glibc
import TestSupport

/// An HTTP server that gives prepared answers, one for each request of its first connection.
final class ScriptedServer {
  /// An answer.
  struct Answer {
    let status: Int
    let field: String?

    init(_ status: Int, _ field: String? = nil) {
      self.status = status
      self.field = field
    }
  }

  private let socket: LoopbackSocket
  var port: UInt16 { socket.port }

  init(_ answers: [Answer]) throws {
    let socket = try LoopbackSocket()
    self.socket = socket
    Thread.detachNewThread {
      let connection = accept(socket.descriptor, nil, nil)
      defer { close(connection) }
      for answer in answers {
        guard Self.readRequest(connection) else { return }
        let field = answer.field.map { "WWW-Authenticate: \($0)\r\n" } ?? ""
        let text = Array(
          "HTTP/1.1 \(answer.status) Answer\r\nContent-Length: 0\r\n\(field)\r\n".utf8)
        var rest = text[...]
        while !rest.isEmpty {
          let count = rest.withUnsafeBytes {
            send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          guard count > 0 else { return }
          rest = rest.dropFirst(count)
        }
      }
    }
  }

  private static func readRequest(_ connection: Int32) -> Bool {
    var request: [UInt8] = []
    while !request.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return false }
      request += buffer.prefix(count)
    }
    return true
  }
}
