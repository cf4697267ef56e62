internal import ApplicationStore
internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import MessagingServer
internal import QueueReplication
internal import VaultedDatabase

/// Opens the tables of applications for a command, beside a server that runs.
extension VaultAccess {
  /// Runs `body` on the tables of a home, and always stops the engine beneath them.
  ///
  /// On a home that is one of several, changes go through the outbox, and the server must run.
  func runStore<Result>(
    makesHome: Bool = false, _ body: (ApplicationStore) async throws -> Result
  ) async throws -> Result {
    let home = try home()
    return try await runEngine(makesHome: makesHome) { engine, vault in
      if engine.isReplicated {
        try await OutboxWriter.attach(to: engine, of: home, vault: vault)
      }
      return try await body(ApplicationStore.open(engine, vault: vault))
    }
  }

  /// Runs `body` on the engine and the messaging vault of a home, and always stops the engine.
  ///
  /// - Parameter makesHome: whether a first use makes the vault, under the publicly known password, and the database, as
  ///   `serve` does. Other commands must not make them in a mistyped home.
  func runEngine<Result>(
    makesHome: Bool, _ body: (MessagingEngine, Vault) async throws -> Result
  ) async throws -> Result {
    let home = try home()
    var configuration = EngineConfiguration()
    configuration.requiresSecuredVault = try credentials.requiresSecuredVault()
    // A given password would open no vault that is made here.
    if makesHome, !credentials.areGiven, try await !Vault.exists(.messaging, in: home.store) {
      _ = try await ServerVault.prepare(
        home, opened: nil, requiresSecuredVault: configuration.requiresSecuredVault,
        logger: configuration.logger)
    }
    try await demandVault()
    let found = try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
    // The engine opens a vault that is not secured, and warns of it.
    let opensHere = try await found.status().isSecured || credentials.areGiven
    let vault = opensHere ? try await open(.messaging) : found
    let engine = try await Detail.timing("started the engine") {
      try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    }
    if !opensHere, OutputLevel.current == .quiet {
      StandardError.warnOfNoSecurity(of: .messaging)
    }
    let result: Result
    do {
      result = try await body(engine, vault)
    } catch {
      try? await engine.stop()
      throw error
    }
    try await engine.stop()
    return result
  }
}
