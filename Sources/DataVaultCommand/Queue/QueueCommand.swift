internal import ArgumentParser
internal import DataVault
internal import MessagingQueue
internal import VaultedDatabase

/// `datavault queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue", abstract: "Publish and receive messages.",
    subcommands: [
      PublishCommand.self, ReceiveCommand.self, AckCommand.self, ReleaseCommand.self,
      RejectCommand.self, ExtendCommand.self, HistoryCommand.self, ChannelsCommand.self,
      StatsCommand.self, ConsumersCommand.self, RetentionCommand.self, DeadLettersCommand.self,
      RedriveCommand.self, PurgeCommand.self, CompactCommand.self, QueueVerifyCommand.self,
      QueueSalvageCommand.self, QueueExportCommand.self, QueueImportCommand.self, RekeyCommand.self,
      AcceptRollbackCommand.self,
    ])
}

/// Starts the engine for a queue command.
struct EngineAccess {
  let home: DataVaultHome
  let credentials: CredentialOptions

  /// Runs `body` on the engine of messages that are there, and stops it whatever happens.
  func run<Result>(
    _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    try await demandDatabase()
    return try await runOrMake(body)
  }

  /// The same where a first start may make vault and database.
  func runOrMake<Result>(
    _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    let engine = try await start()
    let result: Result
    do {
      result = try await body(engine)
    } catch {
      try? await engine.stop()
      throw error
    }
    try await engine.stop()
    return result
  }

  /// The engine, started by its own rules where there is no password to hand to it.
  func start() async throws -> MessagingEngine {
    var configuration = EngineConfiguration()
    configuration.requiresSecuredVault = try credentials.requiresSecuredVault()
    var vault: Vault?
    if credentials.areGiven {
      vault = try await self.vault()
    } else if try await isSecured() {
      vault = try await VaultAccess(home: home, credentials: credentials).open(.messaging)
    }
    return try await MessagingEngine.start(home, vault: vault, configuration: configuration)
  }

  /// The messaging vault, unlocked, for what is done without an engine.
  func vault() async throws -> Vault {
    try await demandVault()
    return try await VaultAccess(home: home, credentials: credentials).open(.messaging)
  }

  /// For commands that only read: a home that was mistyped is not to become a new vault.
  func demandDatabase() async throws {
    let hasVault = try await Vault.exists(.messaging, in: home.store)
    guard try hasVault || home.hasDatabase() else {
      throw CommandFailure(
        .absent, "there are no messages in \(home.path)",
        hint: "check --home; datavault queue publish makes the first")
    }
  }

  /// A password that was given is never dropped for the sake of a first start.
  private func demandVault() async throws {
    if try await Vault.exists(.messaging, in: home.store) { return }
    throw CommandFailure(
      .absent, "there is no messaging vault in \(home.path)",
      hint: try home.hasDatabase()
        ? "there are messages: restore vaults/messaging.vault from a backup"
        : "check --home, or make the vault with datavault secure")
  }

  private func isSecured() async throws -> Bool {
    guard try await Vault.exists(.messaging, in: home.store) else { return false }
    return try await Vault.get(.messaging, in: home.store).status().isSecured
  }
}
