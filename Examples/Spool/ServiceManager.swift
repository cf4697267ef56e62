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
