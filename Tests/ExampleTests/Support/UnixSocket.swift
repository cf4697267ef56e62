import Glibc

/// The operations on Unix sockets that the tests need: unix(7).
enum UnixSocket {
  struct SocketError: Error {
    let number: Int32
  }

  /// Makes a socket, and gives it an address by bind(2) or connect(2).
  static func make(
    _ kind: __socket_type, at path: String,
    by attach: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(kind.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw SocketError(number: errno) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) {
      $0.copyBytes(from: Array(path.utf8).prefix(107))
    }
    let result = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        attach(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else {
      let number = errno
      close(descriptor)
      throw SocketError(number: number)
    }
    return descriptor
  }
}

/// The socket on which a daemon reports to its service manager: sd_notify(3).
final class NotifySocket {
  let path: String
  private let descriptor: Int32

  init(_ path: String) throws {
    self.path = path
    descriptor = try UnixSocket.make(SOCK_DGRAM, at: path) { bind($0, $1, $2) }
    // The daemon can run as another user.
    chmod(path, 0o777)
  }

  /// The next report; nil if none arrives within the timeout.
  func next(withinMilliseconds timeout: Int32) -> String? {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, timeout) > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
  }

  deinit { close(descriptor) }
}

/// A client of the daemon.
///
/// Only one thread uses it at a time.
final class Client: @unchecked Sendable {
  private let descriptor: Int32
  private var received: [UInt8] = []

  init(_ path: String) throws {
    descriptor = try UnixSocket.make(SOCK_STREAM, at: path) { connect($0, $1, $2) }
  }

  /// - Returns: whether the daemon took all of it.
  @discardableResult
  func send(_ bytes: some Collection<UInt8>) -> Bool {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// The next answer; nil if the daemon has closed the connection.
  func answer() -> String? {
    while true {
      if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
        defer { received.removeSubrange(...end) }
        return String(decoding: received[..<end], as: UTF8.self)
      }
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = recv(descriptor, &bytes, bytes.count, 0)
      guard count > 0 else { return nil }
      received += bytes.prefix(count)
    }
  }

  /// Sends one line and returns its answer.
  func ask(_ line: String) -> String? { send(line + "\n") ? answer() : nil }

  /// Closes the sending side, as `printf | socat` does.
  func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

  deinit { close(descriptor) }
}
