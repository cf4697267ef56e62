@_spi(Testing) import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import TestSupport
import Testing
import VaultCrypto

@Suite struct AttemptTests {
  let store = InMemoryVaultStore()
  let vaults: ClockedVaults

  init() { vaults = ClockedVaults(store) }

  @Test
  func `from the third failure on a vault waits 1 s, twice as long each time, 15 minutes at most`()
    async throws
  {
    _ = try await vaults.make()
    let delays = [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
    for (number, delay) in delays.enumerated() {
      #expect(await vaults.attempt("wrong") == .wrongPassword, "failure \(number + 1)")
      guard delay > 0 else { continue }
      vaults.advance(by: .milliseconds(delay * 1000 - 1))
      #expect(await vaults.attempt("right") == .tooManyAttempts, "failure \(number + 1)")
      vaults.advance(by: .milliseconds(1))
    }
    #expect(await vaults.attempt("right") == nil)
  }

  @Test func `a successful attempt clears the failures and records its time`() async throws {
    let vault = try await vaults.make()
    await vaults.fail(times: 5)
    vaults.advance(by: .seconds(900))
    #expect(try await vault.status().failedAttemptCount == 5)
    #expect(try await vault.status().lastOpening == nil)
    #expect(await vaults.attempt("right") == nil)
    let status = try await vault.status()
    #expect(status.failedAttemptCount == 0)
    #expect(status.lastOpening == .nanoseconds(vaults.time.now.nanoseconds))
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    #expect(await vaults.attempt("right") == nil)
  }

  @Test func `a refused attempt is not counted and does not prolong the wait`() async throws {
    let vault = try await vaults.make()
    await vaults.fail(times: 4)
    let record = try vaults.record()
    for _ in 0..<20 { #expect(await vaults.attempt("wrong") == .tooManyAttempts) }
    #expect(try vaults.record() == record)
    #expect(try await vault.status().retryDelay == .seconds(2))
    let error = await #expect(throws: VaultError.self) {
      try await vaults.found().unlock(with: credentials("right"))
    }
    #expect(error?.hint == "try again in 2 seconds")
  }

  @Test func `concurrent attempts are limited like consecutive ones`() async throws {
    _ = try await vaults.make()
    let outcomes = await withTaskGroup(of: VaultError.Code?.self) { group in
      for _ in 0..<8 { group.addTask { [vaults] in await vaults.attempt("wrong") } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.count { $0 == .wrongPassword } == 3)
    #expect(outcomes.count { $0 == .tooManyAttempts } == 5)
  }

  @Test func `a clock that is set back does not prolong the wait`() async throws {
    _ = try await vaults.make()
    await vaults.fail(times: 5)
    vaults.time.setNow(UnixTime(nanoseconds: 1_000_000_000_000_000_000))
    #expect(await vaults.attempt("right") == .tooManyAttempts)
    vaults.advance(by: .seconds(4))
    #expect(await vaults.attempt("right") == nil)
  }

  @Test(arguments: [3, 20, 9_007_199_254_740_991])
  func `any record causes a wait of at most 15 minutes, which ends`(
    failureCount: Int
  ) async throws {
    let vault = try await vaults.make()
    let record =
      #"{"version":1,"failures":\#(failureCount),"retryAt":9007199254740991,"openedAt":null}"#
    try store.writeAttempts(Array("\(record)\n".utf8), for: .messaging, durably: true)
    #expect(await vaults.attempt("right") == .tooManyAttempts)
    #expect(try await vault.status().retryDelay <= .seconds(900))
    vaults.advance(by: .seconds(900))
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    vaults.advance(by: .seconds(900))
    #expect(await vaults.attempt("right") == nil)
    let opened = record.replacing("null", with: "9007199254740991")
    try store.writeAttempts(Array("\(opened)\n".utf8), for: .messaging, durably: true)
    #expect(
      AttemptProbe.reading(Array("\(opened)\n".utf8), now: 0)?.written == Array("\(opened)\n".utf8))
    // The last second of the year 9999.
    #expect(try await vault.status().lastOpening?.components.seconds == 253_402_300_799)
  }

  @Test(arguments: [
    "", "\n", "{}\n", "null\n", "\u{0}",
    #"{"version":2,"failures":9,"retryAt":9007199254740991,"openedAt":null}"# + "\n",
    #"{"version":1,"failures":-1,"retryAt":null,"openedAt":null}"# + "\n",
    #"{"version":1,"failures":9,"retryAt":9007199254740992,"openedAt":null}"# + "\n",
    #"{"version":1,"failures":9,"retryAt":9007199254740991,"openedAt":null}"#,
  ])
  func `an invalid record does not lock the owner out, and the next failure replaces it`(
    record: String
  ) async throws {
    _ = try await vaults.make()
    try store.writeAttempts(Array(record.utf8), for: .messaging, durably: true)
    #expect(await vaults.attempt("wrong") == .wrongPassword)
    #expect(
      try vaults.record() == #"{"version":1,"failures":1,"retryAt":null,"openedAt":null}"# + "\n")
    try store.writeAttempts(Array(record.utf8), for: .messaging, durably: true)
    #expect(await vaults.attempt("right") == nil)
  }

  @Test
  func `the standard credentials are not an attempt, and a secured vault refuses them untried`()
    async throws
  {
    let vault = try await vaults.make()
    await vault.lock()
    // A derivation or decryption would take longer than the test.
    for _ in 0..<5 {
      #expect(await code { try await vault.unlock(with: .standard) } == .wrongPassword)
      await expect(.wrongPassword) {
        try await vault.changePassword(from: .standard, to: credentials("other"))
      }
    }
    #expect(try vaults.record() == nil)
  }

  @Test func `failed attempts do not block the standard credentials`() async throws {
    let vault = try await Vault.create(
      .messaging, in: store, credentials: .standard, parameters: vaults.parameters)
    await vault.lock()
    await vaults.fail(times: 4)
    #expect(await vaults.attempt("wrong") == .tooManyAttempts)
    try await vault.unlock(with: .standard)
  }

  @Test func `only a wrong secret counts as a failure, not damage, absence or a failing store`()
    async throws
  {
    let vault = try await vaults.make()
    await vault.lock()
    let whole = try #require(store[.messaging])
    var builder = VaultFileBuilder()
    builder.statedIterationCount = "10000001"
    let damages = [
      Array(whole.dropLast()), Array(whole.prefix(300)), try builder.file(),
      whole.replacingDigit(),
    ]
    for damage in damages {
      store[.messaging] = damage
      #expect(await code { try await vault.unlock(with: credentials("right")) } == .damaged)
    }
    store[.messaging] = nil
    #expect(await code { try await vault.unlock(with: credentials("right")) } == .doesNotExist)
    store[.messaging] = whole
    store.failure = VaultError(.storeLocked, "a test says so")
    #expect(await code { try await vault.unlock(with: credentials("right")) } == .storeLocked)
    store.failure = nil
    #expect(try vaults.record() == nil)
  }

  @Test func `changing the password with the current one counts as an attempt`() async throws {
    let vault = try await vaults.make()
    await vault.lock()
    func change(from current: String) async -> VaultError.Code? {
      await code {
        try await vault.changePassword(from: credentials(current), to: credentials("other"))
      }
    }
    for _ in 0..<3 { #expect(await change(from: "wrong") == .wrongPassword) }
    #expect(await change(from: "right") == .tooManyAttempts)
    vaults.advance(by: .seconds(1))
    #expect(await change(from: "right") == nil)
    #expect(try await vault.status().failedAttemptCount == 0)
    #expect(await vaults.attempt("other") == nil)
  }

  @Test func `a new vault does not inherit the attempts on an older vault with its name`()
    async throws
  {
    _ = try await vaults.make()
    await vaults.fail(times: 4)
    let record = try #require(try store.readAttempts(.messaging))
    try await Vault.delete(.messaging, in: store)
    #expect(try store.readAttempts(.messaging) == nil)
    // An interrupted deletion leaves the record.
    try store.writeAttempts(record, for: .messaging, durably: true)
    _ = try await vaults.make()
    #expect(await vaults.attempt("right") == nil)
    await vaults.fail(times: 4)
    let latest = try #require(try store.readAttempts(.messaging))
    _ = try await Vault.retire(.messaging, in: store)
    #expect(try store.readAttempts(.messaging) == nil)
    try store.writeAttempts(latest, for: .messaging, durably: true)
    let other = ClockedVaults()
    _ = try await other.make()
    try await Vault.copy(.messaging, from: other.store, to: store)
    #expect(await vaults.attempt("right") == nil)
  }
}

extension [UInt8] {
  /// A vault file with one digit of its ciphertext changed and a matching digest.
  fileprivate func replacingDigit() -> [UInt8] {
    var bytes = self
    bytes[bytes.count - 120] = bytes[bytes.count - 120] == 0x41 ? 0x42 : 0x41
    return VaultFileBuilder.seal(Array(bytes.dropLast(56)))
  }
}
