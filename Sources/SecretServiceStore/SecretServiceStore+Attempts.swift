public import DataVault

/// The record of attempts, in files of the home as the locks are: the service would rewrite the
/// whole keyring for each of them.
extension SecretServiceStore {
  private var attempts: FileVaultStore {
    FileVaultStore(attemptsIn: home, mark: attemptsMark)
  }

  /// Applications that share a home must not count against each other's vaults.
  private var attemptsMark: String {
    if application == Self.standardApplication { return "secret-service" }
    let digits = application.utf8.prefix(48).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    return "secret-service-\(digits.joined())"
  }

  /// The bytes of `<home>/vaults/<id>.secret-service.retry`; nil only when it is absent.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try attempts.readAttempts(id)
  }

  /// Replaces `<home>/vaults/<id>.secret-service.retry`.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    try attempts.writeAttempts(bytes, for: id, durably: durably)
  }

  /// Removes `<home>/vaults/<id>.secret-service.retry`, durably; its lock file stays.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    try attempts.removeAttempts(id)
  }

  /// Takes `<home>/vaults/<id>.secret-service.retry.lock`; waits for whoever is making an attempt.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    // The home may have gone while the service kept the vault.
    try prepare()
    return try attempts.lockAttempts(id)
  }
}
