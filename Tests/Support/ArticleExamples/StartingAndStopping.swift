import DataVault
import MessagingQueue
import VaultedDatabase

/// Starts with the password that systemd passes to the service.
func start(in home: DataVaultHome) async throws -> MessagingEngine {
  let vault = try await Vault.get(.messaging, in: home.store)
  let password = try await SecretSource.credential("messaging-password").read()
  try await vault.unlock(with: Credentials(password: password))
  return try await MessagingEngine.start(home, vault: vault)
}

/// Starts locked, and waits up to a day for `datavault unlock`.
func startLocked(in home: DataVaultHome) async throws -> MessagingEngine {
  var configuration = EngineConfiguration()
  configuration.unlockTimeout = .seconds(86_400)
  configuration.requiresSecuredVault = true
  return try await MessagingEngine.start(home, configuration: configuration)
}
