internal import FileLayer
internal import Glibc
internal import SystemPackage
internal import VaultCrypto

/// A Unix stream socket, unix(7), closed when the object is released.
final class UnixSocket: Sendable {
  let descriptor: Int32

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { _ = close(descriptor) }

  /// The process at the other end, as the kernel states it (`SO_PEERCRED`).
  struct Peer: Sendable, Equatable {
    /// 0 for a process that this pid namespace does not contain.
    let processID: Int32
    let userID: UInt32
  }

  /// Listens at a name in a directory, with mode 0600.
  static func listen(at name: String, in directory: RunDirectory) throws(Errno) -> UnixSocket {
    let socket = try make()
    guard unsafe directory.withAddress(of: name, { unsafe bind(socket.descriptor, $0, $1) }) == 0
    else { throw .current }
    guard unsafe fchmodat(directory.descriptor, name, 0o600, 0) == 0,
      Glibc.listen(socket.descriptor, 16) == 0
    else {
      let reason = Errno.current
      unsafe unlinkat(directory.descriptor, name, 0)
      throw reason
    }
    return socket
  }

  /// Connects to a name in a directory.
  ///
  /// - Throws: `ECONNREFUSED` for a stale socket; `EAGAIN` for a listener with too many connections.
  static func connect(to name: String, in directory: RunDirectory) throws(Errno) -> UnixSocket {
    let socket = try make()
    guard
      unsafe directory.withAddress(
        of: name, { unsafe Glibc.connect(socket.descriptor, $0, $1) }) == 0
    else { throw .current }
    return socket
  }

  private static func make() throws(Errno) -> UnixSocket {
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let descriptor = socket(AF_UNIX, Int32(kind), 0)
    guard descriptor >= 0 else { throw .current }
    return UnixSocket(descriptor)
  }

  /// The next connection; nil if none waits.
  ///
  /// - Throws: `EMFILE`, `ENFILE`, `ENOBUFS` or `ENOMEM`: the connection still waits.
  func accept() throws(Errno) -> UnixSocket? {
    let descriptor = Glibc.accept(descriptor, nil, nil)
    guard descriptor >= 0 else {
      let reason = Errno.current
      switch reason.rawValue {
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: throw reason
      default: return nil
      }
    }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    return UnixSocket(descriptor)
  }

  /// Nil if the kernel does not say.
  var peer: Peer? {
    // struct ucred: pid, uid, gid.
    var words: [UInt32] = [0, 0, 0]
    var byteCount = socklen_t(12)
    guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &words, &byteCount) == 0,
      byteCount == 12
    else { return nil }
    return Peer(processID: Int32(bitPattern: words[0]), userID: words[1])
  }

  /// Whether the peer has closed its end; one that has only ended its sending still waits for a reply.
  var isAbandoned: Bool {
    var entry = pollfd(fd: descriptor, events: 0, revents: 0)
    return unsafe poll(&entry, 1, 0) == 1 && Int32(entry.revents) & (POLLHUP | POLLERR) != 0
  }

  /// Sends all bytes before the deadline.
  func send(_ bytes: borrowing SecretBytes, before deadline: ContinuousClock.Instant) throws(Errno)
  {
    var sent = 0
    while sent < bytes.byteCount {
      let count = unsafe bytes.withUnsafeBytes {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: $0[sent...])
        return unsafe Glibc.send(
          descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
      }
      if count >= 0 {
        sent += count
      } else {
        try wait(for: POLLOUT, after: .current, before: deadline)
      }
    }
  }

  /// Tells the peer that no more bytes come.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Receives until the peer ends its side, at most `maximumByteCount` bytes and one more, before the deadline.
  func receive(
    maximumByteCount: Int, before deadline: ContinuousClock.Instant
  ) throws(Errno) -> SecretBytes {
    var bytes = SecretBytes(zeroCount: maximumByteCount + 1)
    var byteCount = 0
    while byteCount < bytes.byteCount {
      let count = unsafe bytes.withUnsafeMutableBytes {
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: $0[byteCount...])
        return unsafe recv(descriptor, rest.baseAddress, rest.count, 0)
      }
      if count == 0 { break }
      if count > 0 {
        byteCount += count
      } else {
        try wait(for: POLLIN, after: .current, before: deadline)
      }
      guard ContinuousClock.now < deadline else { throw .timedOut }
    }
    return bytes.copy(0..<byteCount)
  }

  private func wait(
    for event: Int32, after reason: Errno, before deadline: ContinuousClock.Instant
  ) throws(Errno) {
    guard reason == .wouldBlock || reason == .interrupted else { throw reason }
    let rest = deadline - .now
    guard rest > .zero else { throw .timedOut }
    var entry = pollfd(fd: descriptor, events: Int16(event), revents: 0)
    unsafe poll(&entry, 1, Int32(clamping: rest.wholeMilliseconds))
  }
}

extension Errno {
  static var current: Errno { Errno(rawValue: Glibc.errno) }
}
