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

  /// Tells whether the messages of a home are an older copy, or have lost their last commits.
  ///
  /// Nothing is changed. An engine can run on the home meanwhile.
  ///
  /// - Parameter vault: the messaging vault of the home, unlocked.
  /// - Throws: `busy`; `databaseMissing`, `foreignDatabase`, `plainDatabase`, `newerVersion`; `damaged` when the
  ///   database does not open; `vaultLocked`, `vault`, `inputOutput`.
  public static func anchorState(
    _ home: DataVaultHome, vault: Vault
  ) async throws(EngineError) -> AnchorState {
    do {
      return try await VaultedDatabase.anchorState(of: home, vault: vault, ledger: EngineLedger())
    } catch {
      throw EngineError(starting: error)
    }
  }
}
