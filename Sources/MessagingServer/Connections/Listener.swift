internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// What is spoken on the connections of a listener.
struct ListenerProtocol: Sendable {
  /// The scheme of URLs; with TLS, an `s` follows.
  let scheme: String
  /// Adds the protocol's handlers to a new connection.
  ///
  /// - Parameter isProtected: whether no one can read or change what passes.
  let configure:
    @Sendable (_ channel: any Channel, _ isProtected: Bool, _ memory: MemoryAccount) throws -> Void

  /// HTTP/1.1, and WebSockets.
  static func http(
    _ limits: HTTPLimits, _ operations: ServerOperations,
    _ answer: @escaping @Sendable (HTTPExchange) -> Void
  ) -> ListenerProtocol {
    ListenerProtocol(scheme: "http") { channel, isProtected, memory in
      try HTTPConnection.configure(
        channel,
        HTTPConnection(
          limits: limits, isProtected: isProtected, operations: operations, memory: memory,
          answer: answer))
    }
  }

  /// A stream of bytes for each session.
  static func stream(
    _ scheme: String, _ makeSession: @escaping @Sendable () -> any ClientSession
  ) -> ListenerProtocol {
    ListenerProtocol(scheme: scheme) { channel, isProtected, memory in
      try channel.pipeline.syncOperations.addHandler(
        StreamConnection(
          makeSession(), isProtected: isProtected, from: LoginSource(channel.remoteAddress),
          memory: memory, on: channel.eventLoop))
    }
  }
}

/// A listening socket and the connections that it accepts.
struct Listener: Sendable {
  /// What each connection gets.
  struct Configuration: Sendable {
    let connections: ConnectionSet
    /// Nil for no TLS.
    var identity: TLSIdentity?
    let spoken: ListenerProtocol
  }

  /// The longest queue of connections that the system has not handed over yet: listen(2).
  private static let backlog: Int32 = 4096

  private let channel: any Channel
  /// What a client is given: `http://127.0.0.1:8080`, with the port that the system chose.
  let url: String

  /// Binds and listens; connections wait in the system until ``accept()``.
  ///
  /// - Throws: ``ServerError`` with the address.
  static func start(
    at address: ListenAddress, on group: any EventLoopGroup, _ configuration: Configuration
  ) async throws(ServerError) -> Listener {
    do {
      let bootstrap = bootstrap(group, configuration)
      let channel =
        switch address.kind {
        case .tcp(let host, let port): try await bootstrap.bind(host: host, port: port).get()
        case .unix(let path): try await bind(bootstrap, path, on: group)
        case .inherited(let descriptor): try await bootstrap.withBoundSocket(descriptor).get()
        }
      return Listener(
        channel: channel,
        url: url(of: channel, configuration.spoken, isEncrypted: configuration.identity != nil))
    } catch {
      throw ServerError(
        .cannotListen, "cannot listen on \(address): \(error)",
        hint: "choose another address, or stop what listens there")
    }
  }

  private init(channel: any Channel, url: String) {
    self.channel = channel
    self.url = url
  }

  /// Whether only programs of this machine can connect.
  var isLocal: Bool {
    switch channel.localAddress {
    case .some(let address): address.isLoopback
    case nil: false
    }
  }

  /// Accepts the connections.
  func accept() async throws { try await channel.setOption(.autoRead, value: true).get() }

  /// Accepts no more connections.
  func close() async { try? await channel.close() }

  /// Takes the place of a socket that a killed server has left, not of one on which another program listens.
  private static func bind(
    _ bootstrap: ServerBootstrap, _ path: String, on group: any EventLoopGroup
  ) async throws -> any Channel {
    let other = try? await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get()
    if let other {
      try? await other.close()
      throw IOError(errnoCode: EADDRINUSE, reason: "bind")
    }
    return try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true)
      .get()
  }

  private static func bootstrap(
    _ group: any EventLoopGroup, _ configuration: Configuration
  ) -> ServerBootstrap {
    ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: backlog)
      .serverChannelOption(.autoRead, value: false)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.maxMessagesPerRead, value: 4)
      .childChannelInitializer { channel in
        guard configuration.connections.add(channel, from: channel.remoteAddress) else {
          return channel.close()
        }
        return channel.eventLoop.makeCompletedFuture {
          if case .some(.v4) = channel.localAddress { Self.sendsWithoutDelay(channel) }
          if case .some(.v6) = channel.localAddress { Self.sendsWithoutDelay(channel) }
          if let context = configuration.identity?.context {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
          }
          let isProtected =
            configuration.identity != nil || channel.remoteAddress?.isLoopback ?? true
          try configuration.spoken.configure(
            channel, isProtected, configuration.connections.memory.open(channel))
        }
      }
  }

  private static func sendsWithoutDelay(_ channel: any Channel) {
    _ = channel.setOption(.tcpOption(.tcp_nodelay), value: 1)
  }

  private static func url(
    of channel: any Channel, _ spoken: ListenerProtocol, isEncrypted: Bool
  ) -> String {
    let scheme = spoken.scheme + (isEncrypted ? "s" : "")
    guard let address = channel.localAddress else { return scheme }
    if let path = address.pathname, !path.isEmpty { return "\(scheme)+unix://\(path)" }
    let port = address.port.map { ":\($0)" } ?? ""
    let host = address.ipAddress ?? ""
    return host.contains(":") ? "\(scheme)://[\(host)]\(port)" : "\(scheme)://\(host)\(port)"
  }
}

extension SocketAddress {
  /// Whether the other end is a program of this machine: 127.0.0.0/8, ::1 or a Unix socket.
  var isLoopback: Bool {
    switch self {
    case .v4: ipAddress?.hasPrefix("127.") ?? false
    case .v6: ipAddress == "::1" || ipAddress?.hasPrefix("::ffff:127.") ?? false
    case .unixDomainSocket: true
    }
  }
}
