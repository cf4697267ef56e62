internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import Glibc
internal import Logging
internal import MessagingQueue
internal import MessagingQueueLifecycle
internal import MessagingServer
internal import ServiceLifecycle
internal import UnixSignals
internal import VaultedDatabase

/// The command `datavaultd serve`.
struct ServeCommand: AsyncParsableCommand, VaultAccess {
  /// A connection then has 8 MiB, so that every request and a transaction of STOMP find room.
  private static let leastMemoryLimit = 64 << 20

  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Serve the messages of a home to stock clients.",
    discussion: """
      Example:
        datavaultd serve --listen 127.0.0.1:8080

      It prints one line for each address: listening on http://127.0.0.1:8080. Without a password it starts, listens, \
      and is sealed until datavault unlock messaging. datavault lock seals it again. SIGTERM ends it after the requests \
      under way. SIGHUP reads the certificate and opens the access log again.
      """)

  @Option(
    help: ArgumentHelp(
      "An address: HOST:PORT, [IPv6]:PORT or unix:PATH. Port 0 lets the system choose. Can be repeated.",
      valueName: "address"))
  var listen: [ListenAddress] = []

  @Option(
    help: ArgumentHelp(
      "An address for STOMP without HTTP, in the same forms. Can be repeated.",
      valueName: "address"))
  var stompListen: [ListenAddress] = []

  @Option(
    name: .customLong("allow-stomp-origin"),
    help: ArgumentHelp(
      "An origin whose web pages can speak STOMP over a WebSocket: https://HOST. Can be repeated.",
      valueName: "origin"))
  var stompOrigins: [WebOrigin] = []

  @Option(
    help: ArgumentHelp("The certificate chain for TLS, in PEM.", valueName: "file"),
    completion: .file())
  var tlsCertificate: String?

  @Option(
    help: ArgumentHelp("The private key of the certificate, in PEM.", valueName: "file"),
    completion: .file())
  var tlsKey: String?

  @Option(
    help: ArgumentHelp(
      "The most memory that clients can make the server hold, in bytes. Default: a quarter of the machine's.",
      valueName: "n"))
  var memoryLimit: Int?

  @Option(
    help: ArgumentHelp(
      "The most connections from an address: one of IPv4, or a /64 of IPv6. This machine has no such limit.",
      valueName: "n"))
  var connectionsPerAddress = 2_000

  @Flag(
    name: .customLong("allow-plain-http"),
    help: "Serve without TLS on addresses that other machines reach, as behind a proxy.")
  var allowsPlainHTTP = false

  @Option(
    name: .customLong("trust-forwarded-from"),
    help: ArgumentHelp(
      "Take the client's address from X-Forwarded-For of a proxy at this address; unix is all Unix sockets. Can be repeated.",
      valueName: "address"))
  var trustedProxies: [TrustedProxy] = []

  @Flag(
    name: .customLong("allow-unsecured"),
    help: "Serve messages that open with the publicly known password to other machines.")
  var allowsUnsecured = false

  @Flag(
    name: .customLong("allow-private-webhooks"),
    help: "Send webhooks to this machine and private networks too, and over plain HTTP.")
  var allowsPrivateWebhooks = false

  @OptionGroup var operations: OperationsOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard (tlsCertificate == nil) == (tlsKey == nil) else {
      throw ValidationError("--tls-certificate and --tls-key are given together")
    }
    guard memoryLimit ?? .max >= Self.leastMemoryLimit else {
      throw ValidationError("--memory-limit is at least \(Self.leastMemoryLimit)")
    }
    guard connectionsPerAddress > 0 else {
      throw ValidationError("--connections-per-address is above 0")
    }
  }

  func run() async throws {
    raiseDescriptorLimit()
    let home = try home()
    var configuration = ServerConfiguration([])
    configuration.engine.unlockTimeout = EngineConfiguration.maximumLeaseDuration
    configuration.engine.requiresSecuredVault = try credentials.requiresSecuredVault()
    configuration.memoryByteCount = memoryLimit
    configuration.maximumConnectionCountPerAddress = connectionsPerAddress
    configuration.allowsPlainHTTP = allowsPlainHTTP
    configuration.allowsUnsecured = allowsUnsecured
    configuration.webhooks.allowsPrivate = allowsPrivateWebhooks
    configuration.stompOrigins = Set(stompOrigins)
    configuration.limits.trustedProxies = Set(trustedProxies)
    let identity = try identity()
    let inherited = InheritedSocket.all(
      in: ServiceManagerEnvironment.values, processID: getpid())
    for socket in inherited { socket.closeOnExecution() }
    try configuration.listen(
      on: listen.isEmpty ? [ListenAddress("127.0.0.1:8080")].compactMap(\.self) : listen,
      stomp: stompListen, operations: operations.operationsListen, inherited: inherited,
      identity: identity)
    let log = try operations.configure(&configuration)
    let reload = await ReloadService(configuration.operations, identity.map { [$0] } ?? [])
    let vault = try await ServerVault.prepare(
      home, opened: credentials.areGiven ? try await open(.messaging) : nil,
      requiresSecuredVault: configuration.engine.requiresSecuredVault,
      logger: configuration.logger)
    let logger = configuration.logger
    configuration.replicate = { engine, vault in
      try await ClusterBrokers.replicate(home, engine, vault, logger: logger)
    }
    let messages = MessagingService(home, vault: vault, configuration: configuration.engine)
    let server = MessagingServer(
      home, vault: vault, messages: messages, configuration: configuration,
      didListen: { url in
        try? OutputDescriptor.standardOutput.writeAll(Array("listening on \(url)\n".utf8))
      })
    let group = ServiceGroup(
      services: [messages, reload, server], gracefulShutdownSignals: [.sigterm, .sigint],
      logger: configuration.logger)
    do {
      try await group.run()
      await log.flush()
    } catch {
      await log.flush()
      throw error
    }
  }

  private func identity() throws -> TLSIdentity? {
    guard let tlsCertificate, let tlsKey else { return nil }
    return try TLSIdentity(certificatePath: tlsCertificate, keyPath: tlsKey)
  }

  /// Each connection needs a descriptor, and the usual limit is 1024.
  private func raiseDescriptorLimit() {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}

extension TrustedProxy: ExpressibleByArgument {
  /// Parses the argument of `--trust-forwarded-from`.
  public init?(argument: String) { self.init(argument) }
}

extension WebOrigin: ExpressibleByArgument {
  /// Parses the argument of `--allow-stomp-origin`.
  public init?(argument: String) { self.init(argument) }
}

extension ListenAddress: ExpressibleByArgument {
  /// Parses the argument of `--listen`.
  public init?(argument: String) { self.init(argument) }
}
