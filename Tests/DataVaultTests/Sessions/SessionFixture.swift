import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import TestSupport
import Testing
import VaultCrypto

/// A home with a keyring of its own, for vaults with the item "name" of value "value".
struct SessionFixture {
  let home = TemporaryHome()
  let keyring: ManualKeyring
  let parameters: VaultParameters

  var time: ManualTimeSource { keyring.time }

  init() {
    let keyring = ManualKeyring()
    var parameters = VaultParameters.cheap
    parameters.sessionKeyring = keyring
    parameters.sinceBoot = { keyring.time.sinceBoot }
    self.keyring = keyring
    self.parameters = parameters
  }

  @discardableResult
  func create(
    _ id: VaultID = .messaging, credentials: borrowing Credentials = credentials("secret")
  ) async throws -> Vault {
    let vault = try await Vault.create(
      id, in: home.store, credentials: credentials, parameters: parameters)
    try await vault.setText("value", for: "name")
    return vault
  }

  /// The vault as another process opens it: locked.
  func found(_ id: VaultID = .messaging) async throws -> Vault {
    try await Vault.get(id, in: home.store, parameters: parameters)
  }

  /// The vault as another process opens it through a session.
  func unlockedBySession(
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Vault {
    let vault = try await found()
    #expect(try await vault.unlockWithSession(), sourceLocation: sourceLocation)
    return vault
  }

  @discardableResult
  func end(_ id: VaultID = .messaging) async throws -> Bool {
    try await VaultSession.end(id, in: home.store, parameters: parameters).count > 0
  }

  func session(_ id: VaultID = .messaging) async throws -> VaultSession? {
    try await VaultSession.find(id, in: home.store, parameters: parameters)
  }
}
