internal import Glibc

/// A listening socket that the service manager has opened: sd_listen_fds(3).
package struct InheritedSocket: Sendable, Equatable {
  /// What it is for, as `FileDescriptorName=` in its unit says.
  package enum Purpose: Sendable, Equatable {
    /// `operations`: metrics and health.
    case operations
    /// `tls`: clients, with TLS.
    case encrypted
    /// `plain`: clients, without TLS.
    case plain
    /// `stomp`: clients of STOMP, as on an address of `--stomp-listen`.
    case stomp
    /// Any other name: clients, as on an address of `--listen`.
    case usual
  }

  /// The first descriptor.
  private static let start: Int32 = 3
  private static let maximumCount: Int32 = 64

  package let descriptor: Int32
  package let purpose: Purpose
  /// Whether it is a socket of TCP, not a Unix socket.
  package let isTCP: Bool

  /// The sockets of this process; empty if the service manager has given none.
  ///
  /// - Parameters:
  ///   - environment: `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`.
  ///   - processID: the number of this process.
  package static func all(
    in environment: [String: String], processID: Int32
  ) -> [InheritedSocket] {
    guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == processID,
      let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }),
      (1...maximumCount).contains(count)
    else { return [] }
    let names =
      environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false) ?? []
    return (0..<count).map { index in
      let name = Int(index) < names.count ? names[Int(index)] : ""
      let descriptor = start + index
      return InheritedSocket(
        descriptor: descriptor, purpose: Purpose(name), isTCP: isTCP(descriptor))
    }
  }

  private static func isTCP(_ descriptor: Int32) -> Bool {
    var address = sockaddr_storage()
    var byteCount = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &byteCount)
      }
    }
    return result == 0 && [AF_INET, AF_INET6].contains(Int32(address.ss_family))
  }

  /// Keeps programs that this process starts from having it.
  package func closeOnExecution() { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
}

extension InheritedSocket.Purpose {
  fileprivate init(_ name: Substring) {
    switch name {
    case "operations": self = .operations
    case "tls": self = .encrypted
    case "plain": self = .plain
    case "stomp": self = .stomp
    default: self = .usual
    }
  }
}
