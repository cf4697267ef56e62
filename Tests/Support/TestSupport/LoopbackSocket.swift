import Glibc

/// A TCP socket of this machine, which is closed with this object.
///
/// It lies here, because the members of `sockaddr_in` belong to SwiftNIO in a module that imports it, and to Glibc
/// elsewhere.
public final class LoopbackSocket: Sendable {
  /// A call that the system refused.
  public struct Failure: Error {
    let number = errno
  }

  /// The socket, for calls of the C library.
  public let descriptor: Int32
  /// The port that it listens at, or that it is connected to.
  public let port: UInt16

  /// A socket at a free port.
  public init(listening: Bool) throws {
    descriptor = Self.socket(SOCK_STREAM)
    var address = Self.address(0)
    var byteCount = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let status = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, byteCount) == 0 && getsockname(descriptor, $0, &byteCount) == 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    guard status, !listening || listen(descriptor, 64) == 0 else { throw Failure() }
  }

  /// A connection to a port.
  public init(connectedTo port: UInt16) throws {
    descriptor = Self.socket(SOCK_STREAM)
    self.port = port
    guard Self.call(connect, descriptor, port) else { throw Failure() }
  }

  deinit { close(descriptor) }

  /// Whether something accepts connections at a port.
  public static func accepts(_ port: UInt16) -> Bool {
    (try? LoopbackSocket(connectedTo: port)) != nil
  }

  /// A port that is free now, for TCP and UDP.
  public static func freePort() throws -> UInt16 {
    for _ in 0..<20 {
      let port = try LoopbackSocket(listening: false).port
      let descriptor = socket(SOCK_DGRAM)
      defer { close(descriptor) }
      if call(bind, descriptor, port) { return port }
    }
    throw Failure()
  }

  private static func socket(_ kind: __socket_type) -> Int32 {
    Glibc.socket(AF_INET, Int32(kind.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  }

  private static func call(
    _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ descriptor: Int32,
    _ port: UInt16
  ) -> Bool {
    var address = address(port)
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private static func address(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return address
  }
}
