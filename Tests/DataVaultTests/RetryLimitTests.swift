import DataVault
import DataVaultTesting
import FileRecording
import TestSupport
import Testing

@Suite struct RetryLimitTests {
  let store = InMemoryVaultStore()
  let vaults: ClockedVaults

  init() { vaults = ClockedVaults(store) }

  private func limited(to limit: Int) async throws -> Vault {
    return try await vaults.make(policy: .lax { $0.retryLimit = limit })
  }

  private func failure() async -> VaultError.Code? {
    vaults.advance(by: .seconds(900))
    return await vaults.attempt("wrong")
  }

  @Test
  func `a failed attempt beyond the limit deletes the vault, also for objects that have it open`()
    async throws
  {
    let open = try await limited(to: 4)
    for _ in 0..<4 { #expect(await failure() == .wrongPassword) }
    #expect(await failure() == .deletedByRetryLimit)
    #expect(store[.messaging] == nil)
    #expect(try store.readAttempts(.messaging) == nil)
    #expect(await code { _ = try await open.itemNames() } == .doesNotExist)
    #expect(await open.isLocked)
    #expect(await code { _ = try await vaults.found() } == .doesNotExist)
  }

  @Test func `a vault object that reaches the limit locks itself`() async throws {
    let vault = try await limited(to: 1)
    var events = vault.lockEvents.makeAsyncIterator()
    await expect(.wrongPassword) { try await vault.unlock(with: credentials("wrong")) }
    #expect(await !vault.isLocked)
    await expect(.deletedByRetryLimit) { try await vault.unlock(with: credentials("wrong")) }
    #expect(await events.next()?.reason == .deletedByRetryLimit)
    #expect(await vault.isLocked)
  }

  @Test func `the right password at the limit opens the vault and resets the count`() async throws {
    _ = try await limited(to: 3)
    for _ in 0..<2 {
      for _ in 0..<3 { #expect(await failure() == .wrongPassword) }
      vaults.advance(by: .seconds(900))
      #expect(await vaults.attempt("right") == nil)
    }
  }

  @Test func `a vault that is recreated during a failed attempt is not deleted for it`()
    async throws
  {
    let store = HookedVaultStore()
    let vaults = ClockedVaults(store)
    _ = try await vaults.make(policy: .lax { $0.retryLimit = 1 })
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    let bytes = try #require(store.base[.messaging])
    // As `delete` and `import` do, between the derivation and the record of its outcome.
    store.atNextLock { () throws(VaultError) in
      try store.base.remove(.messaging)
      try store.base.write(bytes, for: .messaging)
    }
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    #expect(store.base[.messaging] == bytes)
    #expect(try await vaults.found().status().failedAttemptCount == 1)
    store.atNextLock { () throws(VaultError) in try store.base.remove(.messaging) }
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    #expect(try vaults.record() == nil)
  }

  @Test func `a limit removed or a password set during a failed attempt prevents the deletion`()
    async throws
  {
    let store = HookedVaultStore()
    let vaults = ClockedVaults(store)
    let vault = try await vaults.make(policy: .lax { $0.retryLimit = 1 })
    let limited = try #require(store.base[.messaging])
    try await vault.changePassword(to: credentials("another"))
    let withAnother = try #require(store.base[.messaging])
    try await vault.setPolicy(.lax { $0.retryLimit = 0 })
    let unlimited = try #require(store.base[.messaging])
    for (before, after) in [(withAnother, unlimited), (limited, withAnother)] {
      store.base[.messaging] = before
      try store.removeAttempts(.messaging)
      #expect(await vaults.attempt("wrong") == .wrongPassword)
      store.atNextLock { () throws(VaultError) in try store.base.write(after, for: .messaging) }
      #expect(await vaults.attempt("wrong") == .wrongPassword)
      #expect(store.base[.messaging] == after)
    }
  }

  @Test func `a vault without a retry limit is never deleted`() async throws {
    _ = try await vaults.make()
    for _ in 0..<40 { #expect(await failure() == .wrongPassword) }
    #expect(store[.messaging] != nil)
  }

  @Test func `a limit below the failures so far does not affect a right password`() async throws {
    let open = try await vaults.make()
    for _ in 0..<5 { #expect(await failure() == .wrongPassword) }
    try await open.changePolicy { $0.retryLimit = 1 }
    vaults.advance(by: .seconds(900))
    #expect(await vaults.attempt("right") == nil)
  }

  @Test func `refused attempts and the standard credentials never delete a vault`() async throws {
    let vault = try await limited(to: 3)
    for _ in 0..<3 { #expect(await failure() == .wrongPassword) }
    for _ in 0..<10 {
      #expect(await vaults.attempt("wrong") == .tooManyAttempts)
      #expect(await code { try await vault.unlock(with: .standard) } == .wrongPassword)
    }
    #expect(store[.messaging] != nil)
  }
}
