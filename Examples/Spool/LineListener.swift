internal import Foundation
internal import Glibc
internal import Synchronization

/// A Unix socket on which clients send lines and get an answer to each, in order.
///
/// Each client has its own thread, which can block. That is simple, and enough for the programs of
/// one machine. For thousands of clients, SwiftNIO would replace this type, and nothing else would
/// change.
final class LineListener: Sendable {
  typealias Answering = @Sendable ([Line]) async -> [String]

  private static let maximumClientCount = 256
  /// The timeout for a client that does not read its answers.
  private static let sendTimeoutSeconds = 10

  private struct Clients {
    var descriptors: Set<Int32> = []
    var isStopping = false
  }

  private let maximumLineByteCount: Int
  private let listener: Int32
  private let file: SocketFile?
  private let clients = Mutex(Clients())
  /// Each client's thread enters this group.
  private let threads = DispatchGroup()

  /// Binds the socket and listens.
  ///
  /// Its owner and its group can connect.
  init(path: String, maximumLineByteCount: Int) throws(DaemonError) {
    self.maximumLineByteCount = maximumLineByteCount
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let descriptor = socket(AF_UNIX, Int32(kind), 0)
    guard descriptor >= 0 else { throw .current(EX_OSERR, "cannot make a socket") }
    guard let address = UnixAddress(path) else {
      throw DaemonError(EX_USAGE, "\(path) is too long for a socket")
    }
    // The socket file of a killed daemon is removed. The socket of a running daemon is an error.
    if unsafe address.withAddress({ unsafe connect(descriptor, $0, $1) }) == 0 {
      throw DaemonError(EX_TEMPFAIL, "another daemon listens on \(path)")
    }
    if errno == ECONNREFUSED { SocketFile(path)?.remove() }
    guard unsafe address.withAddress({ unsafe bind(descriptor, $0, $1) }) == 0,
      unsafe chmod(path, 0o660) == 0, listen(descriptor, 128) == 0
    else { throw .current(EX_OSERR, "cannot listen on \(path)") }
    listener = descriptor
    file = SocketFile(path)
  }

  /// Serves clients until ``stop()``.
  ///
  /// It returns when every client has the answers to its lines.
  func serve(_ answering: @escaping Answering) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in
        acceptClients(answering)
        file?.remove()
        threads.wait()
        continuation.resume()
      }
    }
  }

  /// Stops accepting clients and lines.
  ///
  /// It can be called from any thread.
  func stop() {
    clients.withLock { clients in
      clients.isStopping = true
      shutdown(listener, Int32(SHUT_RDWR))
      // Lines that have already arrived can still be read.
      for client in clients.descriptors { shutdown(client, Int32(SHUT_RD)) }
    }
  }

  private func acceptClients(_ answering: @escaping Answering) {
    while true {
      let client = Descriptors.accept(on: listener)
      if client < 0 {
        // The listener was shut down. Other errors are temporary: no descriptors, or a client that
        // closed its connection.
        if clients.withLock({ $0.isStopping }) { return }
        usleep(10_000)
        continue
      }
      var timeout = timeval(tv_sec: Self.sendTimeoutSeconds, tv_usec: 0)
      unsafe setsockopt(
        client, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
      guard admit(client) else {
        _ = send("no - busy\n", to: client)
        close(client)
        continue
      }
      threads.enter()
      Thread.detachNewThread { [self] in
        converse(with: client, answering)
        dismiss(client)
        threads.leave()
      }
    }
  }

  private func admit(_ client: Int32) -> Bool {
    clients.withLock { clients in
      guard !clients.isStopping, clients.descriptors.count < Self.maximumClientCount else {
        return false
      }
      return clients.descriptors.insert(client).inserted
    }
  }

  /// Closes under the lock, so that `stop` never shuts down a reused descriptor.
  private func dismiss(_ client: Int32) {
    clients.withLock { clients in
      clients.descriptors.remove(client)
      close(client)
    }
  }

  private func converse(with client: Int32, _ answering: @escaping Answering) {
    var buffer = LineBuffer(maximumByteCount: maximumLineByteCount)
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = unsafe read(client, &piece, piece.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return }
      let lines = buffer.take(piece[..<count])
      if lines.isEmpty { continue }
      let answers = Self.wait { await answering(lines) }
      guard send(answers.map { $0 + "\n" }.joined(), to: client) else { return }
    }
  }

  private func send(_ text: String, to client: Int32) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Blocks this thread, which serves one client, until asynchronous work is done.
  private static func wait(for work: @escaping @Sendable () async -> [String]) -> [String] {
    let outcome = Outcome()
    Task.detached {
      let answers = await work()
      outcome.answers.withLock { $0 = answers }
      outcome.isThere.signal()
    }
    outcome.isThere.wait()
    return outcome.answers.withLock { $0 }
  }

  deinit { close(listener) }
}

/// The answers for a client's thread.
private final class Outcome: Sendable {
  let isThere = DispatchSemaphore(value: 0)
  let answers = Mutex<[String]>([])
}
