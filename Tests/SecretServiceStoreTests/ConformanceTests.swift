import DataVault
import DataVaultTesting
import PrivateKeyring
import SecretServiceStore
import Testing

@Suite(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
struct ConformanceTests {
  @Test(arguments: VaultStoreConformance.Check.allCases)
  func `SecretServiceStore passes the conformance check`(
    check: VaultStoreConformance.Check
  ) async throws {
    let keyring = Unchecked(value: try PrivateKeyring())
    try keyring.value.startUnlocked()
    let (home, address) = (keyring.value.home, keyring.value.busAddress)
    let conformance = VaultStoreConformance(obstacles: [
      VaultStoreConformance.Obstacle(.storeLocked) {
        keyring.value.stopKeyring()
        try keyring.value.startLocked()
      } clear: {
        keyring.value.stopKeyring()
        try keyring.value.startUnlocked()
      },
      VaultStoreConformance.Obstacle(.storeUnavailable) {
        keyring.value.stopKeyring()
      } clear: {
        try keyring.value.startUnlocked()
      },
      VaultStoreConformance.Obstacle(.storeUnavailable) {
        keyring.value.stopKeyring()
        keyring.value.stopBus()
      } clear: {
        try keyring.value.startBus()
        try keyring.value.startUnlocked()
      },
    ]) {
      SecretServiceStore(home: home, busAddress: address)
    }
    try await conformance.run(check)
  }
}

/// An object of the test that only one thread at a time uses.
struct Unchecked<Value>: @unchecked Sendable {
  let value: Value
}
