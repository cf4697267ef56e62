import DataVault
import DataVaultTesting
import FileLayer
import Testing
import VaultCrypto

/// A vault with the item "name", "value", and a keyring of its own.
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

  /// Makes a vault, which is unlocked.
  @discardableResult
  func create(
    _ id: VaultID = .messaging, credentials: borrowing Credentials = credentials("secret")
  ) async throws -> Vault {
    let vault = try await Vault.create(
      id, in: home.store, credentials: credentials, parameters: parameters)
    try await vault.setText("value", for: "name")
    return vault
  }

  /// The vault as another process finds it: locked.
  func found(_ id: VaultID = .messaging) async throws -> Vault {
    try await Vault.get(id, in: home.store, parameters: parameters)
  }

  @discardableResult
  func end(_ id: VaultID = .messaging) async throws -> Bool {
    try await VaultSession.end(id, in: home.store, parameters: parameters)
  }

  func session(_ id: VaultID = .messaging) async throws -> VaultSession? {
    try await VaultSession.find(id, in: home.store, parameters: parameters)
  }
}

/// Looks again and again, for a minute at most: other tests of this process may hold every thread.
func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
  let start = ContinuousClock.now
  while start.duration(to: .now) < .seconds(900) {
    if try await condition() { return true }
    try await Task.sleep(for: .milliseconds(10))
  }
  return false
}
