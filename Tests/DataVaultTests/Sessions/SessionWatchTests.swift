import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Glibc
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@Suite struct SessionWatchTests {
  let fixture = SessionFixture()

  static let key = SessionKey(.kernel(serial: 7), deadline: .seconds(100))

  typealias Row = (KeyringEntry, Duration, SessionState)

  /// The answer of the keyring, the time since boot, and the resulting state.
  static let table: [Row] = [
    (.present(serial: 7), .seconds(99), .live(key)),
    (.present(serial: 7), .seconds(100), .ended(.expired)),
    (.absent, .seconds(99), .ended(.revoked)),
    (.absent, .seconds(100), .ended(.expired)),
    // The date was moved forwards.
    (.expired, .seconds(1), .ended(.expired)),
    (.expired, .seconds(100), .ended(.expired)),
  ]

  @Test(arguments: table.indices)
  func `a session that disappears before its deadline was ended, otherwise it expired`(index: Int) {
    let (entry, now, state) = Self.table[index]
    #expect(SessionState(entry, key: Self.key, now: now) == state)
  }

  @Test func `ending a session locks the vaults that were opened through it`() async throws {
    try await fixture.create().openSession(for: .seconds(60))
    let vault = try await fixture.unlockedBySession()
    try await fixture.end()
    try await eventually { await vault.isLocked }
    #expect(vault.isLockedFromOutside)
    #expect(await code { _ = try await vault.text("name") } == .locked)
    await vault.lock()
    #expect(vault.isLockedFromOutside)
    try await vault.unlock(with: credentials("secret"))
    #expect(!vault.isLockedFromOutside)
  }

  @Test func `an expired session locks the vault, but not as locked from outside`() async throws {
    try await fixture.create().openSession(for: .seconds(60))
    let vault = try await fixture.unlockedBySession()
    fixture.time.advance(by: .seconds(60))
    try await eventually { await vault.isLocked }
    #expect(!vault.isLockedFromOutside)
  }

  @Test func `a prolonged session keeps the vault open for its new duration`() async throws {
    let owner = try await fixture.create()
    try await owner.openSession(for: .seconds(60))
    let vault = try await fixture.unlockedBySession()
    try await owner.openSession(for: .seconds(120))
    fixture.time.advance(by: .seconds(90))
    try await fixture.keyring.waitForWatch()
    #expect(await !vault.isLocked)
    fixture.time.advance(by: .seconds(30))
    try await eventually { await vault.isLocked }
  }

  @Test func `a temporary failure of the keyring ends no session before its deadline`() async throws
  {
    try await fixture.create().openSession(for: .seconds(60))
    let vault = try await fixture.unlockedBySession()
    fixture.keyring.refusal = EPERM
    try await fixture.keyring.waitForWatch()
    #expect(await !vault.isLocked)
    fixture.time.advance(by: .seconds(60))
    try await eventually { await vault.isLocked }
  }

  @Test func `a vault that was unlocked with the password stays open when the session ends`()
    async throws
  {
    let owner = try await fixture.create()
    try await owner.openSession(for: .seconds(60))
    let vault = try await fixture.unlockedBySession()
    let other = try await fixture.unlockedBySession()
    try await vault.unlock(with: credentials("secret"))
    #expect(!vault.endsWithSession)
    try await fixture.end()
    try await eventually { await other.isLocked }
    #expect(await !owner.isLocked)
    #expect(await !vault.isLocked)
  }

  @Test(arguments: [true, false])
  func `the end of a session closes the dependents also of a vault that had timed out before`(
    hasExpired: Bool
  ) async throws {
    let owner = try await fixture.create()
    try await owner.changePolicy { $0.lockTimeoutSeconds = hasExpired ? 0 : 5 }
    try await owner.openSession(for: .seconds(10))
    let vault = try await fixture.unlockedBySession()
    let closings = Mutex(0)
    let dependent = vault.addDependent { closings.withLock { $0 += 1 } }
    fixture.time.advance(by: hasExpired ? .seconds(10) : .seconds(5))
    try await eventually { await vault.isLocked }
    if hasExpired {
      try await eventually { !vault.endsWithSession }
      try await owner.unlock(with: credentials("secret"))
      try await owner.openSession(for: .seconds(60))
    }
    try await eventually { vault.endsWithSession }
    #expect(closings.withLock { $0 } == 0)
    try await fixture.end()
    try await eventually { closings.withLock { $0 } == 1 }
    #expect(vault.isLockedFromOutside)
    try await eventually { !vault.endsWithSession }
    withExtendedLifetime(dependent) {}
  }

  @Test func `the session watch does not keep a released vault alive`() async throws {
    try await fixture.create().openSession(for: .seconds(60))
    weak var kept: Vault?
    do {
      let vault = try await fixture.unlockedBySession()
      kept = vault
    }
    try await eventually { kept == nil }
  }

  @Test func `unlockWithSession(waitingUpTo:) returns when a session begins`() async throws {
    let owner = try await fixture.create()
    let vault = try await fixture.found()
    let count = fixture.keyring.findCount
    let waiting = Task { try await vault.unlockWithSession(waitingUpTo: .seconds(3600)) }
    try await eventually("it has looked") { fixture.keyring.findCount > count }
    #expect(await vault.isLocked)
    try await owner.openSession(for: .seconds(60))
    #expect(try await waiting.value)
    #expect(try await vault.text("name") == "value")
  }

  @Test func `unlockWithSession(waitingUpTo:) continues after a stale session`() async throws {
    let owner = try await fixture.create(credentials: .standard)
    try await owner.openSession(for: .seconds(60))
    fixture.keyring.refusal = EPERM
    try await owner.secure(to: credentials("other"))
    fixture.keyring.refusal = nil
    let vault = try await fixture.found()
    let waiting = Task { try await vault.unlockWithSession(waitingUpTo: .seconds(3600)) }
    try await eventually { fixture.keyring.entries.isEmpty }
    try await owner.openSession(for: .seconds(60))
    #expect(try await waiting.value)
  }

  @Test func `unlockWithSession(waitingUpTo:) ends at its timeout and with its task`() async throws
  {
    try await fixture.create()
    let vault = try await fixture.found()
    #expect(try await !vault.unlockWithSession(waitingUpTo: .zero))
    #expect(try await !vault.unlockWithSession(waitingUpTo: .milliseconds(20)))
    let waiting = Task { try await vault.unlockWithSession(waitingUpTo: .seconds(3600)) }
    waiting.cancel()
    #expect(try await !waiting.value)
  }
}
