import Foundation
import Synchronization
import TestSupport

/// A server of a test, which does on each connection what a script says, and keeps all bytes that it gets.
///
/// The script runs on a thread of its own, and can block.
final class HostileServer: Sendable {
  /// A connection: the script's side of it.
  struct Peer: Sendable {
    fileprivate let socket: Int32
    fileprivate let server: HostileServer
    /// 0 for the first connection.
    let number: Int

    /// Reads a head; nil if the client has ended before.
    func head() -> String? {
      var bytes: [UInt8] = []
      while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
        guard let byte = read(1).first else { return nil }
        bytes.append(byte)
      }
      return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads up to so many bytes; none at the end.
    func read(_ count: Int) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: count)
      let got = recv(socket, &bytes, count, 0)
      let read = Array(bytes.prefix(max(got, 0)))
      server.state.withLock { $0.received += read }
      return read
    }

    /// Sends bytes; false if the client does not take them.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
      var rest = bytes[...]
      while !rest.isEmpty {
        let sent = rest.withUnsafeBytes {
          Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent > 0 else { return false }
        rest = rest.dropFirst(sent)
      }
      return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends byte after byte, with a pause behind each.
    func drip(_ bytes: [UInt8], every milliseconds: UInt32) {
      for byte in bytes {
        guard send([byte]) else { return }
        // The server is slow on purpose.
        usleep(milliseconds * 1000)
      }
    }

    /// Reads on until the client ends the connection.
    func wait() { while !read(4096).isEmpty {} }

    /// Ends the connection with a reset instead of a farewell.
    func reset() {
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
  }

  private struct State {
    var received: [UInt8] = []
    var connectionCount = 0
    var sockets: Set<Int32> = []
    var isStopped = false
  }

  private let listener: LoopbackSocket
  private let state = Mutex(State())

  var port: Int { Int(listener.port) }
  var url: String { "http://127.0.0.1:\(port)" }
  /// All bytes of all connections.
  var received: [UInt8] { state.withLock { $0.received } }
  var text: String { String(decoding: received, as: UTF8.self) }
  var connectionCount: Int { state.withLock { $0.connectionCount } }

  init(_ script: @escaping @Sendable (Peer) -> Void) throws {
    listener = try LoopbackSocket()
    Thread.detachNewThread { self.accept(script) }
  }

  /// Serves a test, and ends all connections behind it.
  static func run<R>(
    _ script: @escaping @Sendable (Peer) -> Void,
    _ body: (HostileServer) async throws -> R
  ) async throws -> R {
    let server = try HostileServer(script)
    defer { server.stop() }
    return try await body(server)
  }

  func stop() {
    state.withLock { state in
      state.isStopped = true
      for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }
    shutdown(listener.descriptor, Int32(SHUT_RDWR))
  }

  private func accept(_ script: @escaping @Sendable (Peer) -> Void) {
    while true {
      let socket = Glibc.accept(listener.descriptor, nil, nil)
      guard socket >= 0 else { break }
      _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
      var isNoDelay: Int32 = 1
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &isNoDelay, 4)
      let number = state.withLock { state -> Int? in
        guard !state.isStopped else { return nil }
        state.sockets.insert(socket)
        state.connectionCount += 1
        return state.connectionCount - 1
      }
      guard let number else {
        close(socket)
        break
      }
      Thread.detachNewThread {
        script(Peer(socket: socket, server: self, number: number))
        self.state.withLock { _ = $0.sockets.remove(socket) }
        close(socket)
      }
    }
  }
}

/// The text of an answer.
func answer(_ status: String, _ headers: [String] = [], _ body: String = "") -> String {
  "HTTP/1.1 \(status)\r\n"
    + (headers + ["Content-Length: \(body.utf8.count)"]).map { "\($0)\r\n" }.joined() + "\r\n"
    + body
}
