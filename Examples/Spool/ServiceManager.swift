internal import Foundation
internal import Glibc

/// Reports the state of the service to systemd: a datagram to its socket, sd_notify(3).
enum ServiceManager {
  /// Sends a report.
  ///
  /// Without a service manager it does nothing, and a lost report is ignored.
  static func notify(_ report: String) {
    guard let name = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"],
      let address = UnixAddress(name)
    else { return }
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
