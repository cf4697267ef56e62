internal import Glibc

/// Reports the state of a service to systemd: a datagram to its socket, sd_notify(3).
///
///     ServiceManager.notify("READY=1")
public enum ServiceManager {
  /// Sends a report: lines such as `READY=1`, `STATUS=delivering` or `STOPPING=1`.
  ///
  /// Without a service manager, which sets `NOTIFY_SOCKET`, it does nothing. A lost report is ignored.
  public static func notify(_ report: String) {
    guard let pointer = unsafe getenv("NOTIFY_SOCKET") else { return }
    send(report, to: unsafe String(cString: pointer))
  }

  /// The lines that a reload begins with; it ends with `READY=1`.
  public static var reloading: String {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return "RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1000)"
  }

  /// Sends a report to a socket.
  ///
  /// - Parameter name: its path, or `@` and an abstract name.
  static func send(_ report: String, to name: String) {
    guard let address = UnixAddress(name) else { return }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { _ = close(descriptor) }
    let bytes = Array(report.utf8)
    unsafe address.withAddress { pointer, byteCount in
      _ = unsafe sendto(
        descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), pointer, byteCount)
    }
  }
}

/// The address of a Unix socket, unix(7): a path, or `@` and an abstract name.
private struct UnixAddress {
  private var address = sockaddr_un()
  private let byteCount: Int

  /// Nil if the name is empty or too long.
  init?(_ name: String) {
    let bytes = Array(name.utf8)
    // A path needs a zero byte at its end.
    guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
      return nil
    }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { path in
      unsafe path.copyBytes(from: bytes)
      if bytes[0] == UInt8(ascii: "@") { unsafe path[0] = 0 }
    }
    // Only the length ends an abstract name.
    byteCount =
      MemoryLayout<sockaddr_un>.offset(of: \.sun_path).map { $0 + bytes.count }
      ?? MemoryLayout<sockaddr_un>.size
  }

  /// Calls `body` with a pointer for sendto(2).
  func withAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    unsafe withUnsafePointer(to: address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(byteCount))
      }
    }
  }
}
