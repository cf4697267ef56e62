import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

/// Engines and their vault's session in the kernel's keyring.
@Suite(.enabled(if: KernelSessions.areAvailable, "the kernel's keyring is not available"))
struct SessionStartTests {
  let scratch = ScratchFolder()
  let home: DataVaultHome

  init() {
    home = DataVaultHome(
      scratch("home"), fileSystem: LinuxFileSystem(), vaultParameters: .cheap)
  }

  /// The secured messaging vault, unlocked.
  private func secured() async throws -> Vault {
    try await Vault.create(
      .messaging, in: home.store, credentials: credentials("long secret"),
      parameters: home.vaultParameters)
  }

  /// Runs `body`, and then the clean-up that `defer` cannot await.
  private func withHome(_ body: (Vault) async throws -> Void) async throws {
    do {
      try await body(secured())
    } catch {
      _ = try? await VaultSession.end(.messaging, in: home.store)
      throw error
    }
    _ = try? await VaultSession.end(.messaging, in: home.store)
  }

  /// Waits until an engine of the home waits for an unlock.
  private func waitForWaitingStart() async throws {
    try await eventually("a start that waits") {
      try await SessionProcess.all(.messaging, in: home.store).contains { !$0.isServing }
    }
  }

  private func startCode(waiting: Duration = .zero) async -> EngineError.Code? {
    let configuration = EngineConfiguration { $0.unlockTimeout = waiting }
    return await code { try await MessagingEngine.start(home, configuration: configuration).stop() }
  }

  @Test func `start() uses the session of a secured vault, and fails without one`()
    async throws
  {
    try await withHome { vault in
      #expect(await startCode() == .vaultLocked)
      #expect(await startCode(waiting: .milliseconds(300)) == .vaultLocked)
      try await vault.openSession(for: .seconds(3600))
      let engine = try await MessagingEngine.start(home)
      #expect(engine.isSecured)
      try await engine.publish(Message(channel: Channel("c"), payload: [1]))
      try await engine.stop()
    }
  }

  @Test(arguments: ["directly", "through a link"])
  func `start() makes no vault in place of one that a session opens`(way: String) async throws {
    try await withHome { vault in
      try await vault.openSession(for: .seconds(3600))
      await vault.lock()
      let (folder, link) = (scratch.path("home"), scratch("link"))
      try FileManager.default.createSymbolicLink(
        atPath: link.string, withDestinationPath: scratch.path.string)
      let path = way == "directly" ? FilePath(folder) : link.appending("home")
      let home = DataVaultHome(
        path, fileSystem: LinuxFileSystem(), vaultParameters: self.home.vaultParameters)
      // The state of a home whose file system is unmounted.
      try FileManager.default.moveItem(atPath: folder, toPath: scratch.path("away"))
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      #expect(await code { _ = try await MessagingEngine.start(home) } == .vaultMissing)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
      try await VaultSession.end(.messaging, in: home.store)
      let engine = try await MessagingEngine.start(home)
      #expect(!engine.isSecured)
      try await engine.stop()
    }
  }

  @Test func `start() opens a locked vault that the caller gives`() async throws {
    try await withHome { vault in
      try await vault.openSession(for: .seconds(3600))
      await vault.lock()
      let engine = try await MessagingEngine.start(home, vault: vault)
      try await engine.stop()
    }
  }

  @Test func `a waiting start() starts only after the vault is unlocked`() async throws {
    try await withHome { vault in
      let (home, waiting) = (home, EngineConfiguration { $0.unlockTimeout = .seconds(3600) })
      let start = Task {
        let engine = try await MessagingEngine.start(home, configuration: waiting)
        let now = ContinuousClock.now
        try await engine.stop()
        return now
      }
      try await waitForWaitingStart()
      let unlock = ContinuousClock.now
      try await vault.openSession(for: .seconds(3600))
      let started = try await start.value
      #expect(unlock < started)
      // No upper limit: other tests of this process can hold every thread for long.
    }
  }

  @Test func `a waiting start() ends when its task is cancelled`() async throws {
    try await withHome { _ in
      let (home, waiting) = (home, EngineConfiguration { $0.unlockTimeout = .seconds(3600) })
      let start = Task { try await MessagingEngine.start(home, configuration: waiting) }
      try await waitForWaitingStart()
      start.cancel()
      await #expect(throws: EngineError.self) { _ = try await start.value }
    }
  }

  @Test func `datavault lock ends an engine, and the next one has its messages`() async throws {
    try await withHome { owner in
      try await owner.openSession(for: .seconds(3600))
      let vault = try await Vault.get(
        .messaging, in: home.store, parameters: home.vaultParameters)
      let engine = try await MessagingEngine.start(home, vault: vault)
      try await engine.publish(Message(channel: Channel("c"), payload: [1]))
      try await VaultSession.end(.messaging, in: home.store)
      let refusal = try await eventually { await code { _ = try await engine.statistics() } }
      #expect(refusal == .vaultLocked)
      for await state in engine.states where state == .refused(.vaultLocked) { break }
      try await eventually { await vault.isLocked }
      try await owner.openSession(for: .seconds(3600))
      let next = try await MessagingEngine.start(home)
      #expect(try await next.receive(from: Channel("c")).map(\.payload) == [[1]])
      try await next.stop()
    }
  }
}

private enum KernelSessions {
  /// Tried once for all tests.
  static let areAvailable = (try? VaultSession.checkAvailability()) != nil
}
