internal import Glibc

/// The address of a Unix socket, unix(7): a path, or `@` and an abstract name.
struct UnixAddress {
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

  /// Calls `body` with a pointer for bind(2), connect(2) or sendto(2).
  func withAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    unsafe withUnsafePointer(to: address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(byteCount))
      }
    }
  }
}
