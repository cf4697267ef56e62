package import DataVault
package import MessagingQueue
internal import QueueReplication
internal import VaultedDatabase

/// Starts the engine for a queue command.
extension VaultAccess {
  /// Runs `body` on the engine of an existing queue, and always stops the engine.
  ///
  /// - Parameter changes: whether it changes what the members of a cluster share. Then the server must run on a home that
  ///   is one of several. Default: false.
  package func runEngine<Result>(
    changes: Bool = false, _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    try await demandDatabase()
    return try await run(changes: changes, body)
  }

  /// Runs `body` on the engine for a change, and always stops it.
  ///
  /// A first start can create the vault and the database.
  package func runOrMakeEngine<Result>(
    _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    try await run(changes: true, body)
  }

  private func run<Result>(
    changes: Bool, _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    let (engine, vault) = try await startEngine()
    let result: Result
    do {
      if changes, engine.isReplicated, let vault {
        try await OutboxWriter.attach(to: engine, of: home(), vault: vault)
      }
      result = try await Detail.timing("used the engine") { try await body(engine) }
    } catch {
      try? await engine.stop()
      throw error
    }
    try await Detail.timing("stopped the engine") { try await engine.stop() }
    return result
  }

  /// Starts the engine.
  ///
  /// Where the vault is not secured and no option names a secret, the engine opens or creates the
  /// vault itself.
  ///
  /// - Returns: the vault, if there was one.
  private func startEngine() async throws -> (MessagingEngine, Vault?) {
    let home = try home()
    var configuration = EngineConfiguration()
    configuration.requiresSecuredVault = try credentials.requiresSecuredVault()
    var vault: Vault?
    var opensHere = credentials.areGiven
    if opensHere {
      vault = try await self.vault()
    } else if try await Vault.exists(.messaging, in: home.store) {
      let found = try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
      opensHere = try await found.status().isSecured
      vault = opensHere ? try await open(.messaging) : found
    }
    let engine = try await Detail.timing("started the engine") {
      try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    }
    // At other levels the engine's own warning is shown.
    if !opensHere, OutputLevel.current == .quiet {
      StandardError.warnOfNoSecurity(of: .messaging)
    }
    return (engine, vault)
  }

  /// Opens the vault of an existing queue, for work without an engine.
  package func queueVault() async throws -> Vault {
    try await demandDatabase()
    return try await vault()
  }

  private func vault() async throws -> Vault {
    try await demandVault()
    return try await open(.messaging)
  }

  /// Throws if the home has neither a messaging vault nor a database.
  ///
  /// Commands that only read must not create a vault in a mistyped home.
  private func demandDatabase() async throws {
    let home = try home()
    let hasVault = try await Vault.exists(.messaging, in: home.store)
    guard try hasVault || home.hasDatabase() else {
      throw CommandFailure(
        .notFound, "no queue found in \(home.path)",
        hint: "check --home, or create the queue with datavault queue publish")
    }
  }

  /// Throws if the home has no messaging vault.
  ///
  /// A first start would create a vault under the publicly known password and ignore the given one.
  package func demandVault() async throws {
    let home = try home()
    if try await Vault.exists(.messaging, in: home.store) { return }
    throw CommandFailure(
      .notFound, "vault 'messaging' not found in \(home.path)",
      hint: try home.hasDatabase()
        ? "a queue exists: restore vaults/messaging.vault from a backup"
        : "check --home, or create the vault with datavault secure")
  }
}
