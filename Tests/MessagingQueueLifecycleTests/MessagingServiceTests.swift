import DataVault
import DataVaultTesting
import Logging
import MessagingQueue
import MessagingQueueLifecycle
import ServiceLifecycle
import ServiceLifecycleTestKit
import TestSupport
import Testing
import VaultedDatabase

@Suite struct MessagingServiceTests {
  private let folder = ScratchFolder()
  private let home: DataVaultHome
  private let store = InMemoryVaultStore()

  init() { home = DataVaultHome(folder("home"), store: store, vaultParameters: .cheap) }

  private func makeVault() async throws -> Vault {
    try await FastTestVault.create(.messaging, in: store, credentials: credentials("long secret"))
  }

  private func code(_ body: () async throws -> Void) async -> EngineError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? EngineError)?.code
    }
  }

  @Test func `a service provides its engine while it runs, and stops it with its group`()
    async throws
  {
    let service = MessagingService(home, vault: try await makeVault())
    #expect(service.state == .stopped)
    #expect(service.runningEngine == nil)
    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await service.run() }
        let engine = try await service.engine()
        #expect(service.state == .running)
        #expect(service.runningEngine === engine)
        try await engine.publish(Message(channel: Channel("c"), payload: [1]))
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
        #expect(engine.state == .stopped)
      }
    }
    #expect(service.state == .stopped)
    #expect(service.runningEngine == nil)
    #expect(await code { _ = try await service.engine() } == .stopped)
  }

  @Test func `a service that requires a secured vault makes none`() async throws {
    var configuration = EngineConfiguration()
    configuration.requiresSecuredVault = true
    let service = MessagingService(home, configuration: configuration)
    #expect(await code { try await service.run() } == .vaultMissing)
    #expect(try await !Vault.exists(.messaging, in: store))
  }

  @Test func `a service whose vault is locked throws vaultLocked, also to waiting callers`()
    async throws
  {
    let vault = try await makeVault()
    let service = MessagingService(home, vault: vault)
    let running = Task { await code { try await service.run() } }
    _ = try await service.engine()
    await vault.lock()
    #expect(await running.value == .vaultLocked)
    #expect(await code { _ = try await service.engine() } == .vaultLocked)
  }

  @Test func `a service that starts while its vault is being locked waits for the unlock`()
    async throws
  {
    let vault = try await makeVault()
    var configuration = EngineConfiguration()
    configuration.unlockTimeout = .seconds(3600)
    let service = MessagingService(home, vault: vault, configuration: configuration)
    let running = Task { await code { try await service.run() } }
    let first = try await service.engine()
    // Another dependent of the vault takes its time, so that the vault is wiped long after the
    // engine's end.
    let (ends, end) = AsyncStream<Void>.makeStream()
    let dependency = vault.addDependent { for await _ in ends { return } }
    let locking = Task { await vault.lock() }
    try await eventually { first.state != .running }
    try await eventually("the next start waits") { service.state == .starting }
    end.yield()
    await locking.value
    withExtendedLifetime(dependency) {}
    try await eventually { service.state == .starting }
    running.cancel()
    #expect(await running.value != .vaultLocked)
  }

  @Test func `a start returns nil after a lock of its vault, and throws after a stop`()
    async throws
  {
    let vault = try await makeVault()
    func start(_ event: EngineStateMachine.Event) async throws -> (MessagingEngine?, EngineState) {
      let stateStore = EngineStateStore()
      _ = (stateStore.handle(.start), stateStore.handle(event))
      let engine = try await MessagingEngine.startUnlessLocked(
        home, vault: vault, configuration: EngineConfiguration(), stateStore: stateStore)
      return (engine, stateStore.state)
    }
    let (engine, state) = try await start(.forcedStop(.vaultLocked))
    #expect(engine == nil)
    #expect(state == .refused(.vaultLocked))
    #expect(await code { _ = try await start(.stop) } == .stopped)
  }

  @Test func `a service that cannot start throws its error to its group and to waiting callers`()
    async throws
  {
    let vault = try await makeVault()
    await vault.lock()
    let service = MessagingService(home, vault: vault)
    let waiting = Task { await code { _ = try await service.engine() } }
    #expect(await code { try await service.run() } == .vaultLocked)
    #expect(await waiting.value == .vaultLocked)
    #expect(service.state == .refused(.vaultLocked))
  }

  @Test func `a shutdown ends the wait for an unlock`() async throws {
    let vault = try await makeVault()
    await vault.lock()
    var configuration = EngineConfiguration()
    configuration.unlockTimeout = .seconds(3600)
    let service = MessagingService(home, vault: vault, configuration: configuration)
    try await testGracefulShutdown { trigger in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await service.run() }
        try await eventually { service.state == .starting }
        trigger.triggerGracefulShutdown()
        try await group.waitForAll()
      }
    }
    #expect(await code { _ = try await service.engine() } == .stopped)
  }

  @Test func `a cancelled task stops waiting for the engine`() async throws {
    let service = MessagingService(home)
    let waiting = Task { await code { _ = try await service.engine() } }
    waiting.cancel()
    #expect(await waiting.value == .cancelled)
  }
}
