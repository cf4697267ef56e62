internal import Dispatch
internal import FileLayer
internal import Glibc
internal import SystemPackage

/// Watches the notification file with inotify(7).
final class InotifyListener: NotificationListener {
  private let events: CInt
  private let interruptionReader: CInt
  private let interruptionWriter: CInt

  /// - Throws: at the limits of inotify (`fs.inotify.max_user_instances`) or of descriptors.
  init(_ path: FilePath) throws(FileError) {
    // A pair of sockets instead of a pipe, as it can be made close-on-exec atomically.
    var pair: [CInt] = [-1, -1]
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let isPaired = unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0
    (interruptionReader, interruptionWriter) = (pair[0], pair[1])
    events = isPaired ? inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK)) : -1
    guard events >= 0 else { throw FileError(.read, path, Errno(rawValue: errno)) }
    let mask = IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF
    guard unsafe inotify_add_watch(events, path.string, UInt32(mask)) >= 0 else {
      throw FileError(.read, path, Errno(rawValue: errno))
    }
  }

  deinit {
    for descriptor in [events, interruptionReader, interruptionWriter] where descriptor >= 0 {
      _ = close(descriptor)
    }
  }

  func wait(upTo timeout: Duration?) -> NotificationEvent {
    var descriptors = [events, interruptionReader].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let milliseconds = timeout.map { CInt(clamping: $0.wholeMilliseconds) } ?? -1
    let count = unsafe poll(&descriptors, 2, milliseconds)
    // A signal ends the wait early; the waiter then looks at the database and waits again.
    if count <= 0 { return .timedOut }
    let isInterrupted = drain(interruptionReader).count > 0
    let mask = Self.union(ofMasksIn: drain(events))
    let isLost = mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED) != 0
    if isLost { return .lost }
    return mask == 0 && isInterrupted ? .interrupted : .changed
  }

  func interrupt() {
    // The result does not matter: a full buffer ends the wait too.
    _ = unsafe write(interruptionWriter, [1], 1)
  }

  private func drain(_ descriptor: CInt) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress, $0.count)
      }
      if count <= 0 { return bytes }
      bytes += chunk[..<count]
    }
  }

  /// The union of the masks of all events.
  ///
  /// `struct inotify_event` is `wd`, `mask`, `cookie`, `len`, four bytes each, and `len` bytes of a
  /// name.
  private static func union(ofMasksIn bytes: [UInt8]) -> UInt32 {
    unsafe bytes.withUnsafeBytes { bytes in
      var mask: UInt32 = 0
      var offset = 0
      while offset + 16 <= bytes.count {
        mask |= unsafe bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        let nameByteCount = unsafe bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self)
        offset += 16 + Int(nameByteCount)
      }
      return mask
    }
  }
}

/// Waits without a transport: its thread reads the database after each wait.
final class PollingListener: NotificationListener {
  private let interruption = DispatchSemaphore(value: 0)

  func wait(upTo timeout: Duration?) -> NotificationEvent {
    let deadline: DispatchTime =
      timeout.map { .now() + .milliseconds(Int(clamping: $0.wholeMilliseconds)) }
      ?? .distantFuture
    return interruption.wait(timeout: deadline) == .success ? .interrupted : .timedOut
  }

  func interrupt() {
    interruption.signal()
  }
}
