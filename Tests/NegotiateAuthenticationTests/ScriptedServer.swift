import Foundation
import Glibc

/// A TCP socket of this machine, which is closed with this object.
final class LoopbackSocket: Sendable {
  struct Failure: Error {
    let number = errno
  }

  let descriptor: Int32
  let port: UInt16

  /// A socket at a free port.
  init(listening: Bool) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = Self.address(0)
    var byteCount = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let status = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, byteCount) == 0 && getsockname(descriptor, $0, &byteCount) == 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    guard status, !listening || listen(descriptor, 8) == 0 else { throw Failure() }
  }

  deinit { close(descriptor) }

  /// Whether something accepts connections at a port.
  static func accepts(_ port: UInt16) -> Bool { isPossible(port, SOCK_STREAM, connect) }

  /// Whether a socket can be bound to a port.
  static func isFree(_ port: UInt16, _ kind: __socket_type) -> Bool { isPossible(port, kind, bind) }

  private static func isPossible(
    _ port: UInt16, _ kind: __socket_type,
    _ call: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32
  ) -> Bool {
    let descriptor = socket(AF_INET, Int32(kind.rawValue), 0)
    defer { close(descriptor) }
    var address = address(port)
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return address
  }
}

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
    let socket = try LoopbackSocket(listening: true)
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
