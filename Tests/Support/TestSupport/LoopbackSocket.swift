import Glibc
import Synchronization

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

  /// A socket that listens at a free port.
  public init() throws {
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
    guard status, listen(descriptor, 64) == 0 else { throw Failure() }
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

  private static let given = Mutex<Set<UInt16>>([])

  /// Ports that are free now, for TCP and UDP, and that nothing else gets in this process.
  ///
  /// They lie below those that the system gives to sockets without a port: a server that starts later, or again,
  /// finds its port still free.
  public static func freePorts(_ count: Int) throws -> [UInt16] {
    try given.withLock { given in
      var ports: [UInt16] = []
      for _ in 0..<1_000 where ports.count < count {
        let port = UInt16.random(in: 10_000..<32_000)
        guard !given.contains(port), isFree(port, SOCK_STREAM), isFree(port, SOCK_DGRAM) else {
          continue
        }
        given.insert(port)
        ports.append(port)
      }
      guard ports.count == count else { throw Failure() }
      return ports
    }
  }

  private static func isFree(_ port: UInt16, _ kind: __socket_type) -> Bool {
    let descriptor = socket(kind)
    defer { close(descriptor) }
    return call(bind, descriptor, port)
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
