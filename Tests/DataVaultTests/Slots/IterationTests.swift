import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// Vaults made with 10 iterations and opened by software whose default is 20.
@Suite struct IterationTests {
  let store = HookedVaultStore()

  private var later: VaultParameters {
    var parameters = VaultParameters.cheap
    parameters.iterationCount = 20
    return parameters
  }

  private func make(in store: any VaultStore) async throws {
    let vault = try await store.createVault(with: credentials("p", salt: "s"))
    try await vault.setText("value", for: "name")
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
  }

  private func count(in store: any VaultStore) async throws -> Int? {
    try await FastTestVault.get(.messaging, in: store).status().slots.first?.iterationCount
  }

  @Test func `after a higher default the next unlock raises the slot's iterations once`()
    async throws
  {
    try await make(in: store)
    let made = store.writeCount
    let vault = try await Vault.get(.messaging, in: store, parameters: later)
    try await vault.unlock(with: credentials("p", salt: "s"))
    #expect(store.writeCount == made + 1)
    #expect(try await count(in: store) == 20)
    #expect(try await vault.status().isAuthenticated)
    #expect(try await vault.text("name") == "value")
    let again = try await Vault.get(.messaging, in: store, parameters: later)
    try await again.unlock(with: credentials("p", salt: "s"))
    #expect(store.writeCount == made + 1)
    #expect(await code { try await again.unlock(with: credentials("p")) } == .wrongPassword)
    try await again.unlock(with: .recoveryCode(SlotSecrets.code()))
  }

  @Test func `a wrong password or another kind of secret does not raise the iterations`()
    async throws
  {
    try await make(in: store)
    let made = store.writeCount
    let vault = try await Vault.get(.messaging, in: store, parameters: later)
    #expect(await code { try await vault.unlock(with: credentials("p")) } == .wrongPassword)
    try await vault.unlock(with: .recoveryCode(SlotSecrets.code()))
    #expect(store.writeCount == made)
    #expect(try await count(in: store) == 10)
  }

  @Test func `a slot with more iterations than the default keeps them`() async throws {
    let vault = try await Vault.create(
      .messaging, in: store, credentials: credentials("p"), parameters: later)
    await vault.lock()
    _ = try await store.openVault(with: credentials("p"))
    #expect(store.writeCount == 1)
    #expect(try await count(in: store) == 20)
  }

  @Test func `a read-only store still opens, and the iterations are raised later`() async throws {
    try await make(in: store)
    store.atNextLock { () throws(VaultError) in
      throw VaultError(.writeFailed, "read-only, a test says")
    }
    let vault = try await Vault.get(.messaging, in: store, parameters: later)
    try await vault.unlock(with: credentials("p", salt: "s"))
    #expect(try await vault.text("name") == "value")
    #expect(try await count(in: store) == 10)
    try await vault.unlock(with: credentials("p", salt: "s"))
    #expect(try await count(in: store) == 20)
  }

  @Test func `raising the iterations does not undo a concurrent password change`() async throws {
    try await make(in: store)
    // The file that another process has written before the lock is taken.
    let other = InMemoryVaultStore()
    other[.messaging] = store.base[.messaging]
    let changed = try await FastTestVault.get(.messaging, in: other)
    try await changed.changePassword(from: credentials("p", salt: "s"), to: credentials("new"))
    let bytes = other[.messaging]
    store.atNextLock { [store] in store.base[.messaging] = bytes }
    let vault = try await Vault.get(.messaging, in: store, parameters: later)
    try await vault.unlock(with: credentials("p", salt: "s"))
    #expect(store.base[.messaging] == bytes)
    let found = try await FastTestVault.get(.messaging, in: store)
    await expect(.wrongPassword) { try await found.unlock(with: credentials("p", salt: "s")) }
    try await found.unlock(with: credentials("new"))
  }

  @Test(arguments: [Errno.noSpace, .ioError, nil])
  func `after a failure or power cut at any step the password opens and nothing is lost`(
    errno: Errno?
  ) async throws {
    var raisedCount = 0
    let stepCount = try await FileRecorder.atEachStep(failing: errno) { recorder, _ in
      let home = TemporaryHome()
      try await make(in: home.store)
      let initial = try home.tree()
      let vault = try await Vault.get(.messaging, in: home.recording(recorder), parameters: later)
      let failure = await code { try await vault.unlock(with: credentials("p", salt: "s")) }
      // A dead process cannot read either.
      #expect(failure == nil || recorder.hasCrashed)
      let disk = DiskReplay(recorder.events, initialFiles: initial)
        .files(after: .everythingUnsynchronized)
      for home in [home, try TemporaryHome(holding: home.relative(disk))] {
        let found = try await home.store.openVault(with: credentials("p", salt: "s"))
        #expect(try await found.text("name") == "value")
      }
      if try await count(in: home.store) == 20 { raisedCount += 1 }
    }
    #expect(stepCount > 3)
    #expect(raisedCount > 0)
  }
}
