internal import FileLayer
internal import Glibc
internal import NIOCore
internal import Synchronization

/// Looks up the addresses of hosts, each host once at a time: callers that come together share an answer.
///
/// So a name server that does not answer holds up one thread for its host, and no other host.
final class HostLookup: Sendable {
  /// Finds all addresses of a name, without a port.
  typealias Resolver = @Sendable (String) async throws -> [SocketAddress]

  private let resolve: Resolver
  private let running = Mutex<[String: EventLoopFuture<[SocketAddress]>]>([:])

  /// - Parameter resolve: by default the system's resolver, which reads numeric addresses too.
  init(_ resolve: @escaping Resolver = HostLookup.system) { self.resolve = resolve }

  /// The addresses of a host.
  func addresses(
    of host: String, on eventLoop: any EventLoop
  ) -> EventLoopFuture<[SocketAddress]> {
    let (future, isNew) = running.withLock { running in
      if let future = running[host] { return (future, false) }
      let future = eventLoop.makeFutureWithTask { [resolve] in try await resolve(host) }
      running[host] = future
      return (future, true)
    }
    if isNew {
      future.whenComplete { [self] _ in running.withLock { $0[host] = nil } }
    }
    return future.hop(to: eventLoop)
  }

  /// Asks getaddrinfo(3), on a thread of its own.
  static let system: Resolver = { host in
    try await onBlockingThread("datavault.lookup") { try lookUp(host) }
  }

  /// The host has no address, or its name servers do not answer.
  struct NotFound: Error {}

  private static func lookUp(_ host: String) throws -> [SocketAddress] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, nil, &hints, &list) == 0 else { throw NotFound() }
    defer { unsafe freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = unsafe list
    while let info = unsafe next {
      if let raw = unsafe UnsafeRawPointer(info.pointee.ai_addr) {
        switch unsafe info.pointee.ai_family {
        case AF_INET:
          addresses.append(SocketAddress(unsafe raw.loadUnaligned(as: sockaddr_in.self)))
        case AF_INET6:
          addresses.append(SocketAddress(unsafe raw.loadUnaligned(as: sockaddr_in6.self)))
        default: break
        }
      }
      unsafe next = info.pointee.ai_next
    }
    return addresses
  }
}
