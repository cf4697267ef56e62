import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import TestSupport
import Testing

@Suite struct LockTimeoutTests {
  let vaults = ClockedVaults()

  private func limited(to seconds: Int) async throws -> Vault {
    return try await vaults.make(policy: .lax { $0.lockTimeoutSeconds = seconds })
  }

  @Test func `a vault locks itself when its timeout expires, without any call`() async throws {
    let vault = try await limited(to: 60)
    var events = vault.lockEvents.makeAsyncIterator()
    try await eventually { vaults.alarm.sleeperCount == 1 }
    vaults.advance(by: .seconds(60))
    #expect(await events.next()?.reason == .timeout)
    #expect(await code { _ = try await vault.itemNames() } == .locked)
  }

  @Test func `a call after the timeout fails even before the timer task runs`() async throws {
    let vault = try await limited(to: 60)
    try await vault.setText("1", for: "a")
    vaults.time.advance(by: .milliseconds(59_999))
    #expect(try await vault.text("a") == "1")
    vaults.time.advance(by: .milliseconds(1))
    #expect(await code { _ = try await vault.text("a") } == .locked)
    #expect(await code { try await vault.resetLockTimeout() } == .locked)
    #expect(await vault.isLocked)
    try await vault.unlock(with: credentials("right"))
    vaults.time.advance(by: .seconds(59))
    #expect(try await vault.text("a") == "1")
  }

  @Test func `operations do not extend the timeout, but a reset does`() async throws {
    let vault = try await limited(to: 60)
    vaults.time.advance(by: .seconds(40))
    try await vault.setText("1", for: "a")
    try await vault.resetLockTimeout()
    vaults.time.advance(by: .seconds(59))
    try await vault.setText("2", for: "a")
    vaults.time.advance(by: .seconds(1))
    #expect(await vault.isLocked)
  }

  @Test func `a reset also postpones the automatic lock`() async throws {
    let vault = try await limited(to: 60)
    var events = vault.lockEvents.makeAsyncIterator()
    vaults.advance(by: .seconds(40))
    try await vault.resetLockTimeout()
    try await eventually { vaults.alarm.sleeperCount == 1 }
    vaults.advance(by: .seconds(40))
    #expect(await !vault.isLocked)
    try await eventually { vaults.alarm.sleeperCount == 1 }
    vaults.advance(by: .seconds(20))
    #expect(await events.next()?.reason == .timeout)
  }

  @Test func `a jump of the wall clock does not affect the timeout`() async throws {
    let vault = try await limited(to: 60)
    vaults.time.setNow(UnixTime(nanoseconds: .max / 2))
    #expect(await !vault.isLocked)
    vaults.time.setNow(UnixTime(nanoseconds: 0))
    vaults.time.advance(by: .seconds(60))
    #expect(await vault.isLocked)
  }

  @Test func `a new timeout counts from its change, or from when another process reads it`()
    async throws
  {
    let vault = try await vaults.make()
    let other = try await vaults.found()
    try await other.unlock(with: credentials("right"))
    vaults.time.advance(by: .seconds(1000))
    try await vault.changePolicy { $0.lockTimeoutSeconds = 60 }
    vaults.time.advance(by: .seconds(30))
    _ = try await other.itemNames()
    vaults.time.advance(by: .seconds(30))
    #expect(await vault.isLocked)
    #expect(await !other.isLocked)
    vaults.time.advance(by: .seconds(30))
    #expect(await other.isLocked)
  }

  @Test func `a vault without a timeout and a locked vault have no timer task`() async throws {
    let vault = try await vaults.make()
    try await vault.resetLockTimeout()
    #expect(vaults.alarm.sleeperCount == 0)
    try await vault.changePolicy { $0.lockTimeoutSeconds = 60 }
    try await eventually { vaults.alarm.sleeperCount == 1 }
    await vault.lock()
    try await eventually { vaults.alarm.sleeperCount == 0 }
  }

  @Test func `the timer task does not keep a released vault alive`() async throws {
    var vault: Vault? = try await limited(to: 60)
    weak let dropped = vault
    try await eventually { vaults.alarm.sleeperCount == 1 }
    vault = nil
    try await eventually { dropped == nil }
    try await eventually { vaults.alarm.sleeperCount == 0 }
  }

  @Test func `lockEvents reports each lock with its reason and ends with the vault`() async throws {
    var vault: Vault? = try await vaults.make()
    let events = try #require(vault?.lockEvents)
    await vault?.lock()
    await vault?.lock()
    try await vault?.unlock(with: credentials("right"))
    try await Vault.delete(.messaging, in: vaults.store)
    #expect(await code { _ = try await vault?.itemNames() } == .doesNotExist)
    vault = nil
    var reasons: [VaultLockEvent.Reason] = []
    for await event in events { reasons.append(event.reason) }
    #expect(reasons == [.request, .deleted])
  }
}
