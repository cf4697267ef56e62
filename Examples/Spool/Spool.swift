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
    if let password = options.password {
      try await vault.unlock(with: Credentials(password: password.read()))
    }
    var configuration = EngineConfiguration()
    configuration.unlockTimeout = EngineConfiguration.maximumLeaseDuration
    configuration.requiresSecuredVault = options.requiresSecuredVault
    let messages = MessagingService(home, vault: vault, configuration: configuration)
    let channel = try Channel(options.channel)
    let worker = delivering(channel, by: options.command, logger: logger)
    let workers = WorkerService(messages, [worker], configuration: options.workerConfiguration)
    let ingest = Ingest(
      messages: messages, channel: channel, vault: vault,
      maximumPayloadByteCount: configuration.maximumPayloadByteCount)
    let listener = LineServer(
      path: options.socket,
      maximumLineByteCount: configuration.maximumPayloadByteCount + Request.longestPrefix,
      answers: ingest.answers)
    // Services stop from the last to the first: the listener accepts no more lines, the workers
    // finish their messages, and the engine closes its database.
    try await ServiceGroup(
      services: [messages, StatusReport(messages: messages), workers, listener],
      gracefulShutdownSignals: [.sigterm, .sigint],
      logger: logger
    ).run()
  }
}
