import DataVault
import DataVaultTesting
import FileLayer
import Glibc
import Testing
import VaultCrypto

@Suite struct SessionWatchTests {
  let bench = SessionFixture()

  static let key = SessionKey(serial: 7, deadline: .seconds(100))

  typealias Row = (KeyringEntry, Duration, SessionState)

  /// What the keyring says, the time since boot, what follows.
  static let table: [Row] = [
    (.present(serial: 7), .seconds(99), .live(key)),
    (.present(serial: 7), .seconds(100), .over(.expired)),
    (.absent, .seconds(99), .over(.ended)),
    (.absent, .seconds(100), .over(.expired)),
    // The date was set forward.
    (.expired, .seconds(1), .over(.expired)),
    (.expired, .seconds(100), .over(.expired)),
  ]

  @Test(arguments: table.indices)
  func `a session that is gone before its time was ended, else it has expired`(index: Int) {
    let (entry, now, state) = Self.table[index]
    #expect(SessionState(entry, key: Self.key, now: now) == state)
  }

  @Test func `a session that is ended locks what was opened through it`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    try await bench.end()
    #expect(try await eventually { await vault.isLocked })
    #expect(vault.isLockedFromOutside)
    #expect(await code { _ = try await vault.text("name") } == .locked)
    await vault.lock()
    #expect(vault.isLockedFromOutside)
    try await vault.unlock(with: credentials("secret"))
    #expect(!vault.isLockedFromOutside)
  }

  @Test func `a session that expires locks too, but nobody has locked`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    bench.time.advance(by: .seconds(60))
    #expect(try await eventually { await vault.isLocked })
    #expect(!vault.isLockedFromOutside)
  }

  @Test func `a session that is prolonged keeps the vault open for its new time`() async throws {
    let owner = try await bench.create()
    try await owner.openSession(for: .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    try await owner.openSession(for: .seconds(120))
    bench.time.advance(by: .seconds(90))
    try await Task.sleep(for: .milliseconds(600))
    #expect(await !vault.isLocked)
    bench.time.advance(by: .seconds(30))
    #expect(try await eventually { await vault.isLocked })
  }

  @Test func `a keyring that fails for a while ends nothing before the time`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    bench.keyring.refusal = EPERM
    try await Task.sleep(for: .milliseconds(600))
    #expect(await !vault.isLocked)
    bench.time.advance(by: .seconds(60))
    #expect(try await eventually { await vault.isLocked })
  }

  @Test func `who has given the password stays when the session ends`() async throws {
    let owner = try await bench.create()
    try await owner.openSession(for: .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    try await vault.unlock(with: credentials("secret"))
    try await bench.end()
    try await Task.sleep(for: .milliseconds(600))
    #expect(await !owner.isLocked)
    #expect(await !vault.isLocked)
  }

  @Test func `a vault that nobody holds any more is not kept by its watch`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    weak var kept: Vault?
    do {
      let vault = try await bench.found()
      #expect(try await vault.unlockWithSession())
      kept = vault
    }
    #expect(try await eventually { kept == nil })
  }

  @Test func `who waits notices an unlock`() async throws {
    let owner = try await bench.create()
    let vault = try await bench.found()
    let waiting = Task { try await vault.unlockWithSession(waitingUpTo: .seconds(3600)) }
    try await Task.sleep(for: .milliseconds(300))
    #expect(await vault.isLocked)
    try await owner.openSession(for: .seconds(60))
    #expect(try await waiting.value)
    #expect(try await vault.text("name") == "value")
  }

  @Test func `who waits goes on past a session that is stale`() async throws {
    let owner = try await bench.create(credentials: .standard)
    try await owner.openSession(for: .seconds(60))
    bench.keyring.refusal = EPERM
    try await owner.secure(to: credentials("other"))
    bench.keyring.refusal = nil
    let vault = try await bench.found()
    let waiting = Task { try await vault.unlockWithSession(waitingUpTo: .seconds(3600)) }
    #expect(try await eventually { bench.keyring.entries.isEmpty })
    try await owner.openSession(for: .seconds(60))
    #expect(try await waiting.value)
  }

  @Test func `a wait ends with its time, and with its task`() async throws {
    try await bench.create()
    let vault = try await bench.found()
    #expect(try await !vault.unlockWithSession(waitingUpTo: .zero))
    #expect(try await !vault.unlockWithSession(waitingUpTo: .milliseconds(20)))
    let waiting = Task { try await vault.unlockWithSession(waitingUpTo: .seconds(3600)) }
    waiting.cancel()
    #expect(try await !waiting.value)
  }
}
