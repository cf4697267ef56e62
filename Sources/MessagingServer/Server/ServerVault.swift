package import DataVault
package import Logging
internal import MessagingQueue
package import VaultedDatabase

/// The messaging vault as a server needs it: `datavault lock` must reach it, however it was opened.
package enum ServerVault {
  /// The vault of a home; a first start makes one under the publicly known password.
  ///
  /// - Parameters:
  ///   - opened: the vault, if a password has opened it. It gets a session, so that `datavault lock` seals the server and
  ///     `datavault unlock` opens it again.
  /// - Throws: an `EngineError` if the configuration forbids the vault that is there, or a new one; the errors of the
  ///   vault's store.
  package static func prepare(
    _ home: DataVaultHome, opened: Vault?, requiresSecuredVault: Bool, logger: Logger
  ) async throws -> Vault {
    if let opened {
      if try await opened.status().isSecured { try await makeLockable(opened, logger) }
      return opened
    }
    if let refusal = try await MessagingEngine.refusal(
      toStartIn: home, requiresSecuredVault: requiresSecuredVault)
    {
      throw refusal
    }
    if try await Vault.exists(.messaging, in: home.store) { return try await vault(of: home) }
    do throws(VaultError) {
      return try await Vault.create(
        .messaging, in: home.store, credentials: .standard, parameters: home.vaultParameters)
    } catch {
      guard error.code == .alreadyExists else { throw error }
      return try await vault(of: home)
    }
  }

  private static func vault(of home: DataVaultHome) async throws -> Vault {
    try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
  }

  private static func makeLockable(_ vault: Vault, _ logger: Logger) async throws {
    do throws(VaultError) {
      // After the session's time, a lock would no longer reach the server.
      try await vault.openSession(for: VaultSession.maximumDuration)
      // The engine opens it again, through the session.
      await vault.lock()
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      logger.warning(
        "the system has no sessions for this process: datavault lock does not reach this server")
    }
  }
}
