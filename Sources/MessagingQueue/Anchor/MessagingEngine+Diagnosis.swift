package import DataVault
package import VaultedDatabase

extension MessagingEngine {
  /// Whether a home's messages are an older copy than its vault knows: nothing, or what `doctor` says of it.
  ///
  /// - Parameter vault: the messaging vault of the home, unlocked.
  package static func examineAge(of home: DataVaultHome, vault: Vault) async -> [HomeFinding] {
    await HomeDoctor.examineAge(of: home, vault: vault, ledger: EngineLedger())
  }
}
