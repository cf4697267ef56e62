internal import DataVault
internal import Logging
internal import MessagingQueue
internal import MessagingQueueLifecycle
internal import ServiceLifecycle
internal import SystemPackage
internal import UnixSignals
internal import VaultedDatabase

/// The daemon: an engine, a listener that publishes messages, and workers that receive them.
struct Spool {
  let options: Options
  let logger: Logger

  /// Runs until SIGTERM or SIGINT.
  func run() async throws {
    let home = DataVaultHome(FilePath(options.home))
    let vault = try await Vault.get(.messaging, in: home.store)
    // A systemd credential unlocks the vault. Without one, the daemon waits for `datavault unlock`.
    if let password = try await Credential.read(options.credential) {
      try await vault.unlock(with: Credentials(password: password))
    }
    var configuration = EngineConfiguration()
    configuration.unlockTimeout = EngineConfiguration.maximumLeaseDuration
    configuration.requiresSecuredVault = options.requiresSecuredVault
    let messages = MessagingService(home, vault: vault, configuration: configuration)
    let channel = try Channel(options.channel)
    let workers = Workers(messages: messages, channel: channel, options: options, logger: logger)
    let ingest = Ingest(messages: messages, channel: channel, vault: vault)
    let listener = try RequestListener(
      path: options.socket, maximumPayloadByteCount: configuration.maximumPayloadByteCount,
      keep: ingest.publish)
    // Services stop from the last to the first: the listener accepts no more lines, the workers
    // finish their messages, and the engine closes its database.
    try await ServiceGroup(
      services: [messages, workers, listener], gracefulShutdownSignals: [.sigterm, .sigint],
      logger: logger
    ).run()
  }
}
