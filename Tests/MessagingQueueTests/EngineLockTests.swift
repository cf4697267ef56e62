import DataVault
import FileRecording
import GRDB
import MessagingQueue
import Synchronization
import TestSupport
import Testing

@Suite struct EngineLockTests {
  private let place = EngineHome()
  private let message = Message(channel: .orders, payload: [1])

  @Test func `lock() ends the vault's engines before it wipes the vault`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    let other = try await place.start(vault)
    try await engine.publish(message)
    await vault.lock()
    #expect(await vault.isLocked)
    for engine in [engine, other] {
      #expect(try await engine.settledState() == .refused(.vaultLocked))
      #expect(await code { try await engine.publish(message) } == .vaultLocked)
      #expect(await code { _ = try await engine.history(of: .orders) } == .vaultLocked)
      // Its connections are closed.
      #expect(throws: (any Error).self) { try engine.pool.read { _ in } }
      #expect(await code { try await engine.read { _ in } } == .vaultLocked)
      #expect(await code { try await engine.write { _ in } } == .vaultLocked)
    }
    try await engine.stop()
    #expect(engine.state == .stopped)

    let next = try await place.start(place.unlockedVault())
    #expect(try await next.receive(from: .orders).count == 1)
    try await next.stop()
  }

  @Test func `lock() waits for the commit under way`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    let gate = WriterGate(engine.pool)
    let publishing = Task { await code { try await engine.publish(message) } }
    try await eventually { engine.waitingCount > 0 }
    let locking = Task { await vault.lock() }
    try await eventually { engine.state != .running }
    #expect(await code { try await engine.publish(message) } == .vaultLocked)
    #expect(await !vault.isLocked)
    gate.open()
    await locking.value
    #expect(await publishing.value == nil)
    #expect(try await engine.settledState() == .refused(.vaultLocked))
  }

  @Test func `lock() ends waits for messages with vaultLocked`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    let reading = Task {
      await code { for try await _ in try await engine.messages(of: .orders) {} }
    }
    let receiving = Task {
      await code {
        _ = try await engine.receive(from: .orders, waitingUpTo: .seconds(3600))
      }
    }
    try await eventually { engine.notifier.waiterCount == 2 }
    await vault.lock()
    #expect(await reading.value == .vaultLocked)
    #expect(await receiving.value == .vaultLocked)
  }

  @Test func `reads and writes that begin during a lock end with vaultLocked`() async throws {
    _ = try await place.makeVault()
    for _ in 0..<5 {
      let vault = try await place.unlockedVault()
      let engine = try await place.start(vault)
      let callers = (0..<8).map { number in Task { await engine.callUntilRefused(number) } }
      await vault.lock()
      for caller in callers { #expect(await caller.value == .vaultLocked) }
    }
  }

  @Test func `lock() ignores an engine that has stopped`() async throws {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    try await engine.stop()
    await vault.lock()
    #expect(engine.state == .stopped)
  }

  @Test(arguments: [false, true])
  func `a lock timeout stops an engine only with stopsWhenVaultExpires`(
    stops: Bool
  ) async throws {
    var policy = VaultPolicy()
    policy.lockTimeoutSeconds = 60
    let vault = try await place.makeVault(policy: policy)
    let engine = try await place.start(vault) { $0.stopsWhenVaultExpires = stops }
    var states = engine.states.makeAsyncIterator()
    #expect(await states.next() == .running)
    place.time.advance(by: .seconds(60))
    #expect(await vault.isLocked)
    if stops {
      #expect(await states.next() == .stopping)
      #expect(await states.next() == .refused(.vaultLocked))
      #expect(await code { try await engine.publish(message) } == .vaultLocked)
    } else {
      try await engine.publish(message)
      // A lock still reaches the engine, though the vault is already wiped.
      await vault.lock()
      #expect(try await engine.settledState() == .refused(.vaultLocked))
    }
  }

  @Test func `an operation is refused for a lock that the engine's state does not show yet`()
    async throws
  {
    let isLocked = Atomic(false)
    let plain = try PlainEngine()
    let engine = try MessagingEngine(
      pool: plain.pool, time: plain.time, isSecured: true,
      isLockedOut: { isLocked.load(ordering: .relaxed) })
    #expect(engine.refusal() == nil)
    isLocked.store(true, ordering: .relaxed)
    #expect(engine.state == .running)
    #expect(engine.refusal()?.code == .vaultLocked)
    #expect(await code { try await engine.read { _ in } } == .vaultLocked)
  }
}
