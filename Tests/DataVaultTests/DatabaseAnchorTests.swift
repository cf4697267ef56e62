import DataVaultTesting
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import DataVault

@Suite struct DatabaseAnchorTests {
  private let store = InMemoryVaultStore()

  private func anchor(_ byte: UInt8, at commitNumber: Int64) -> DatabaseAnchor {
    DatabaseAnchor(id: Array(repeating: byte, count: 16), commitNumber: commitNumber)
  }

  private func boundVault() async throws -> Vault {
    let vault = try await store.createVault(with: credentials("right"))
    _ = try await vault.beginBinding(databaseID: Array(1...8))
    try await vault.completeBinding()
    return vault
  }

  @Test func `a vault without a database refuses an anchor`() async throws {
    let vault = try await store.createVault(with: credentials("right"))
    #expect(await code { _ = try await vault.anchor() } == .keyMissing)
    #expect(await code { try await vault.storeAnchor(anchor(1, at: 1)) } == .keyMissing)
  }

  @Test func `an older anchor does not replace a newer one, unless a rollback is accepted`()
    async throws
  {
    let vault = try await boundVault()
    #expect(try await vault.anchor() == nil)
    try await vault.storeAnchor(anchor(1, at: 10))
    try await vault.storeAnchor(anchor(2, at: 9))
    try await vault.storeAnchor(anchor(3, at: 10))
    #expect(try await vault.anchor() == anchor(1, at: 10))
    try await vault.storeAnchor(anchor(4, at: 11))
    try await vault.storeAnchor(anchor(5, at: 2), acceptsOlder: true)
    let other = try await store.openVault(with: credentials("right"))
    #expect(try await other.anchor() == anchor(5, at: 2))
  }

  @Test func `an anchor survives a change of the password and of the database's key`()
    async throws
  {
    let vault = try await boundVault()
    try await vault.storeAnchor(anchor(1, at: 10))
    try await vault.changePassword(from: credentials("right"), to: credentials("new"))
    try await vault.storePendingKey(SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
    try await vault.promotePendingKey()
    #expect(try await vault.anchor() == anchor(1, at: 10))
  }

  @Test func `a vault that is being locked stores an anchor and refuses everything else`()
    async throws
  {
    let vault = try await boundVault()
    let codes = Mutex<[VaultError.Code?]>([])
    let anchor = anchor(1, at: 10)
    let dependency = vault.addDependent {
      let refused = await code { try await vault.completeBinding() }
      let taken = await code { try await vault.storeAnchor(anchor) }
      codes.withLock { $0 += [refused, taken] }
    }
    await vault.lock()
    let found = codes.withLock { $0 }
    #expect(found == [.locked, nil])
    #expect(await vault.isLocked)
    #expect(await code { try await vault.storeAnchor(anchor) } == .locked)
    try await vault.unlock(with: credentials("right"))
    #expect(try await vault.anchor() == anchor)
    withExtendedLifetime(dependency) {}
  }

  @Test func `lock() waits for a limited time, and not for released dependents`() async throws {
    let vault = try await boundVault()
    do {
      // It does not end within the test.
      let gone = vault.addDependent { try? await Task.sleep(for: .seconds(3600)) }
      withExtendedLifetime(gone) {}
    }
    await vault.lock()
    #expect(await vault.isLocked)
    try await vault.unlock(with: credentials("right"))
    // It does not end within the test.
    let slow = vault.addDependent { try? await Task.sleep(for: .seconds(3600)) }
    await vault.lock(because: .request, closingTimeout: .milliseconds(10))
    #expect(await vault.isLocked)
    withExtendedLifetime(slow) {}
  }
}
