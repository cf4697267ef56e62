import DataVault
import DataVaultTesting
import Testing

@Suite struct RetryLimitTests {
  let store = InMemoryVaultStore()
  let vaults: ClockedVaults

  init() {
    vaults = ClockedVaults(store)
  }

  private func limited(to limit: Int) async throws -> Vault {
    var policy = VaultPolicy()
    policy.minimumLength = 0
    policy.retryLimit = limit
    return try await vaults.make(policy: policy)
  }

  private func failure() async -> VaultError.Code? {
    vaults.advance(by: .seconds(900))
    return await vaults.attempt("wrong")
  }

  @Test func `the wrong attempt after the limit deletes the vault, for whoever has it open too`()
    async throws
  {
    let open = try await limited(to: 4)
    for _ in 0..<4 { #expect(await failure() == .wrongPassword) }
    #expect(await failure() == .wiped)
    #expect(store[.messaging] == nil)
    #expect(try store.readAttempts(.messaging) == nil)
    #expect(await code { _ = try await open.itemNames() } == .doesNotExist)
    #expect(await open.isLocked)
    #expect(await code { _ = try await vaults.found() } == .doesNotExist)
  }

  @Test func `a wiping vault wipes what it has open itself`() async throws {
    let vault = try await limited(to: 1)
    var events = vault.lockEvents.makeAsyncIterator()
    let wrong = { @Sendable in
      await code { try await vault.unlock(with: credentials("wrong")) }
    }
    #expect(await wrong() == .wrongPassword)
    #expect(await !vault.isLocked)
    #expect(await wrong() == .wiped)
    #expect(await events.next()?.reason == .wiped)
    #expect(await vault.isLocked)
  }

  @Test func `the right password at the limit opens, and the count begins anew`() async throws {
    _ = try await limited(to: 3)
    for _ in 0..<2 {
      for _ in 0..<3 { #expect(await failure() == .wrongPassword) }
      vaults.advance(by: .seconds(900))
      #expect(await vaults.attempt("right") == nil)
    }
  }

  @Test func `a vault that was made anew during a wrong attempt is not deleted for it`()
    async throws
  {
    let store = HookedVaultStore()
    let vaults = ClockedVaults(store)
    var policy = VaultPolicy()
    policy.minimumLength = 0
    policy.retryLimit = 1
    _ = try await vaults.make(policy: policy)
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    let bytes = try #require(store.base[.messaging])
    // As `delete` and `import` do, between the derivation and its outcome.
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

  @Test func `a limit that was lifted, or a password that was set, during a wrong attempt counts`()
    async throws
  {
    let store = HookedVaultStore()
    let vaults = ClockedVaults(store)
    var policy = VaultPolicy()
    policy.minimumLength = 0
    policy.retryLimit = 1
    let vault = try await vaults.make(policy: policy)
    let limited = try #require(store.base[.messaging])
    try await vault.changePassword(to: credentials("another"))
    let withAnother = try #require(store.base[.messaging])
    policy.retryLimit = 0
    try await vault.setPolicy(policy)
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

  @Test func `without a limit nothing is ever deleted`() async throws {
    _ = try await vaults.make()
    for _ in 0..<40 { #expect(await failure() == .wrongPassword) }
    #expect(store[.messaging] != nil)
  }

  @Test func `a limit set below what has failed already costs a right password nothing`()
    async throws
  {
    let open = try await vaults.make()
    for _ in 0..<5 { #expect(await failure() == .wrongPassword) }
    var policy = try await open.policy()
    policy.retryLimit = 1
    try await open.setPolicy(policy)
    vaults.advance(by: .seconds(900))
    #expect(await vaults.attempt("right") == nil)
  }

  @Test func `attempts that are not taken, and the standard credentials, never delete`()
    async throws
  {
    let vault = try await limited(to: 3)
    for _ in 0..<3 { #expect(await failure() == .wrongPassword) }
    for _ in 0..<10 {
      #expect(await vaults.attempt("wrong") == .tooManyAttempts)
      #expect(await code { try await vault.unlock(with: .standard) } == .wrongPassword)
    }
    #expect(store[.messaging] != nil)
  }
}
