public import DataVault
public import VaultedDatabase

extension MessagingEngine {
  /// Accepts messages that a start refuses as `rolledBack`: an older copy, or a database that has lost its
  /// last commits.
  ///
  /// What it lacks is gone; messages that had been acknowledged since the copy was made may be
  /// delivered again. Durable on return.
  ///
  /// - Parameter vault: the messaging vault of the home, unlocked.
  /// - Returns: how far it was behind; nil when there is nothing to accept, and nothing was changed.
  /// - Throws: as ``start(_:vault:configuration:)``.
  @discardableResult
  public static func acceptRollback(
    _ home: DataVaultHome, vault: Vault
  ) async throws(EngineError) -> AcceptedRollback? {
    do {
      return try await VaultedDatabase.acceptRollback(
        of: home, vault: vault, ledger: EngineLedger())
    } catch {
      throw EngineError(starting: error)
    }
  }
  /// Whether a home's messages are an older copy than its vault knows: nothing, or what `doctor` says of it.
  ///
  /// - Parameter vault: the messaging vault of the home, unlocked.
  package static func examineAge(of home: DataVaultHome, vault: Vault) async -> [HomeFinding] {
    await HomeDoctor.examineAge(of: home, vault: vault, ledger: EngineLedger())
  }
}
