import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@Suite struct DatabaseKeyTests {
  let store = InMemoryVaultStore()
  let databaseID: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

  /// The current and the pending key, as another process reads them.
  private func keys(_ credentials: borrowing Credentials) async throws -> [[UInt8]?] {
    let vault = try await store.openVault(with: credentials)
    let keys = try await vault.databaseKeys()
    let current = keys.current.array()
    return [current, keys.takePending()?.array()]
  }

  @Test func `a binding begins with a key and ends bound`() async throws {
    let vault = try await store.createVault(with: credentials("p"))
    #expect(try await vault.binding() == nil)
    #expect(await code { _ = try await vault.databaseKeys() } == .keyMissing)
    #expect(await code { try await vault.completeBinding() } == .keyMissing)
    #expect(await code { try await vault.storePendingKey(.random(byteCount: 32)) } == .keyMissing)
    let key = try await vault.beginBinding(databaseID: databaseID).array()
    #expect(key.count == 32)
    #expect(
      try await vault.status().binding
        == DatabaseBinding(databaseID: databaseID, state: .creating))
    #expect(try await keys(credentials("p")) == [key, nil])
    try await vault.completeBinding()
    try await vault.completeBinding()
    #expect(try await vault.binding() == DatabaseBinding(databaseID: databaseID, state: .bound))
    await expect(.alreadyExists) { _ = try await vault.beginBinding(databaseID: databaseID) }
  }

  @Test func `an interrupted creation resumes with its own key and id`() async throws {
    let first = try await store.createVault(with: credentials("p"))
    let key = try await first.beginBinding(databaseID: databaseID).array()
    let vault = try await store.openVault(with: credentials("p"))
    let again = try await vault.beginBinding(databaseID: [9, 9, 9, 9, 9, 9, 9, 9]).array()
    #expect(again == key)
    #expect(try await vault.binding()?.databaseID == databaseID)
  }

  @Test func `storePendingKey() stores the given key, and promotion can be repeated`()
    async throws
  {
    let vault = try await store.createVault(with: credentials("p"))
    let key = try await vault.beginBinding(databaseID: databaseID).array()
    try await vault.completeBinding()
    try await vault.promotePendingKey()
    #expect(try await keys(credentials("p")) == [key, nil])
    let pending = SecretBytes.random(byteCount: 32)
    try await vault.storePendingKey(pending)
    let both = try await keys(credentials("p"))
    let isTheOneGiven = both[1] == pending.array()
    #expect(isTheOneGiven)
    await expect(.keyChangePending) { try await vault.storePendingKey(.random(byteCount: 32)) }
    await expect(.invalidArgument) { try await vault.storePendingKey(.random(byteCount: 31)) }
    #expect(try await keys(credentials("p")) == both)
    #expect(both[0] == key)
    try await vault.promotePendingKey()
    try await vault.promotePendingKey()
    #expect(try await keys(credentials("p")) == [both[1], nil])
  }

  @Test func `securing a bound vault gives it a pending key, in one write`() async throws {
    let vault = try await store.createVault(with: .standard)
    let key = try await vault.beginBinding(databaseID: databaseID).array()
    try await vault.completeBinding()
    try await vault.secure(to: credentials("mine"))
    let both = try await keys(credentials("mine"))
    #expect(both[0] == key)
    #expect(both[1] != nil && both[1] != key)
    #expect(try await vault.binding() == DatabaseBinding(databaseID: databaseID, state: .bound))
  }

  @Test func `securing is refused while a key change is under way`() async throws {
    let vault = try await store.createVault(with: .standard)
    _ = try await vault.beginBinding(databaseID: databaseID).byteCount
    try await vault.storePendingKey(.random(byteCount: 32))
    let before = store[.messaging]
    #expect(await code { try await vault.secure(to: credentials("m")) } == .keyChangePending)
    await expect(.keyChangePending) { try await vault.changePassword(to: credentials("m")) }
    #expect(store[.messaging] == before)
  }

  @Test func `database keys are not items`() async throws {
    let vault = try await store.createVault(with: credentials("p"))
    _ = try await vault.beginBinding(databaseID: databaseID).byteCount
    #expect(try await vault.itemNames().isEmpty)
    for name in ["databases", "current", "pending"] {
      #expect(await code { _ = try await vault.item(name) } == .itemNotFound)
    }
  }

  @Test func `a bound vault is deleted only by force`() async throws {
    let vault = try await store.createVault(with: credentials("p"))
    _ = try await vault.beginBinding(databaseID: databaseID).byteCount
    #expect(await code { try await Vault.delete(.messaging, in: store) } == .databaseStillExists)
    try await Vault.delete(.messaging, in: store, force: false, databaseExists: false)
    #expect(try await !Vault.exists(.messaging, in: store))
  }

  @Test func `a damaged vault is deleted only by force`() async throws {
    store[.messaging] = [1, 2, 3]
    #expect(await code { try await Vault.delete(.messaging, in: store) } == .damaged)
    try await Vault.delete(.messaging, in: store, force: true)
    #expect(try await !Vault.exists(.messaging, in: store))
  }
}
