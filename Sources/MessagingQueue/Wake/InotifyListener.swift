internal import Glibc
internal import SystemPackage

/// Watches a bell's file with inotify(7).
final class InotifyListener: BellListener {
  private let events: CInt
  private let interruptionReader: CInt
  private let interruptionWriter: CInt

  /// - Throws: at the limits of inotify (`fs.inotify.max_user_instances`) or of descriptors.
  init(_ path: FilePath) throws(BellError) {
    // A pair of sockets, and not a pipe: it can be closed on exec from the first moment on.
    var pair: [CInt] = [-1, -1]
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let isPaired = unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0
    (interruptionReader, interruptionWriter) = (pair[0], pair[1])
    events = isPaired ? inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK)) : -1
    guard events >= 0 else { throw BellError("cannot use inotify: \(Errno(rawValue: errno))") }
    let mask = IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF
    guard unsafe inotify_add_watch(events, path.string, UInt32(mask)) >= 0 else {
      throw BellError("cannot watch \(path): \(Errno(rawValue: errno))")
    }
  }

  deinit {
    for descriptor in [events, interruptionReader, interruptionWriter] where descriptor >= 0 {
      _ = close(descriptor)
    }
  }

  func wait(upTo timeout: Duration?) -> BellEvent {
    var descriptors = [events, interruptionReader].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let milliseconds = timeout.map { CInt(clamping: $0.roundedUpMilliseconds) } ?? -1
    let count = unsafe poll(&descriptors, 2, milliseconds)
    // A signal ends the wait early: whoever waits looks at the database and waits again.
    if count <= 0 { return .timedOut }
    let isInterrupted = drain(interruptionReader).count > 0
    let mask = Self.union(ofMasksIn: drain(events))
    let isLost = mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED) != 0
    if isLost { return .lost }
    return mask == 0 && isInterrupted ? .interrupted : .rang
  }

  func interrupt() {
    // A full pipe interrupts as well.
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

  /// What happened at all: `struct inotify_event` is `wd`, `mask`, `cookie`, `len`, four bytes
  /// each, and `len` bytes of a name.
  private static func union(ofMasksIn bytes: [UInt8]) -> UInt32 {
    var mask: UInt32 = 0
    var offset = 0
    while offset + 16 <= bytes.count {
      mask |= number(bytes[(offset + 4)...])
      offset += 16 + Int(number(bytes[(offset + 12)...]))
    }
    return mask
  }

  /// Four bytes in the machine's order.
  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    var number: UInt32 = 0
    unsafe withUnsafeMutableBytes(of: &number) { unsafe $0.copyBytes(from: bytes.prefix(4)) }
    return number
  }
}

extension Duration {
  /// Milliseconds for poll(2), which must not return before the time.
  var roundedUpMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let perMillisecond: Int64 = 1_000_000_000_000_000
    return seconds * 1000 + (attoseconds + perMillisecond - 1) / perMillisecond
  }
}
