internal import DataVault
internal import FileLayer
internal import GRDB
internal import Logging
internal import Synchronization

/// How an engine ends.
extension MessagingEngine {
  /// Where in its life the engine is.
  public nonisolated var state: EngineState { life.state }

  /// The state now and each one after it, as long as anybody has the engine.
  ///
  /// The last 16 wait for a slow reader.
  public nonisolated var states: AsyncStream<EngineState> { life.states }

  /// Ends the engine: every later call throws `stopped`.
  ///
  /// Calls that wait for their commit get it first, for up to
  /// ``EngineConfiguration/stopTimeout``; then the rollback anchor is recorded and the database
  /// closed. What is leased stays leased until its time. A second call waits for the first.
  ///
  /// - Throws: `busy` when the database is still in use after that time, `inputOutput`; the engine
  ///   has ended all the same, and the database closes when it is free.
  public nonisolated func stop() async throws(EngineError) {
    try await end(after: .stop)
  }

  /// Ends the engine because of something outside it, and returns when its database is closed.
  nonisolated func forcedStop(_ code: EngineError.Code) async throws(EngineError) {
    try await end(after: .forcedStop(code))
  }

  /// Carries out what ``EngineStateMachine`` says about an end.
  nonisolated func end(after event: EngineStateMachine.Event) async throws(EngineError) {
    guard life.handle(event) == .closeDown else { return await life.awaitEnd() }
    try await closeDown()
  }

  /// Finishes the work and closes the database: once in the life of an engine.
  nonisolated func closeDown() async throws(EngineError) {
    let deadline = ContinuousClock.now + configuration.stopTimeout
    let refusal = EngineError.notRunning(life.refusal ?? .stopped)
    endMaintenance()
    endObservation()
    tables.notifier.stop()
    let isIdle = await completes(within: configuration.stopTimeout) {
      await self.commits.close(refusing: refusal)
    }
    if !isIdle {
      commits.failWaiting(refusal)
      tables.pool.interrupt()
    }
    if let anchors {
      _ = await completes(within: max(deadline - .now, .zero)) { await anchors.recordNow() }
    }
    let box = Outcome()
    let isClosed = await completes(within: max(deadline - .now, .seconds(1))) {
      do throws(EngineError) {
        try await self.closeConnections()
      } catch {
        box.error.withLock { $0 = error }
      }
    }
    _ = life.handle(.closed)
    if let error = box.error.withLock({ $0 }) { throw error }
    guard isClosed else {
      throw EngineError(
        .busy, "the message database is still being read; it closes when that ends",
        hint: "end what reads before the engine")
    }
  }
}

/// What a piece of work that may be waited for no longer has come to.
private final class Outcome: Sendable {
  let error = Mutex<EngineError?>(nil)
}

extension EngineError {
  /// Why an engine that does not run takes no work.
  static func notRunning(_ code: Code) -> EngineError {
    switch code {
    case .vaultLocked:
      EngineError(
        code, "the messaging vault was locked",
        hint: "run datavault unlock \(VaultID.messaging), and start again")
    default:
      EngineError(code, "the engine is stopped", hint: "start another")
    }
  }
}

/// What an engine and the vault it was started on have to do with each other.
///
/// It is there before the engine is: a vault that is locked in the middle of a start ends that too.
final class VaultLockObserver: Sendable {
  private let life: EngineStateStore
  private let engine = Mutex<WeakEngine?>(nil)
  private let dependency = Mutex<VaultDependency?>(nil)
  private let expiry = Mutex<Task<Void, Never>?>(nil)

  init(_ vault: Vault, _ life: EngineStateStore, stopsWhenVaultExpires: Bool) {
    self.life = life
    dependency.withLock { dependency in
      dependency = vault.addDependent { [weak self] in await self?.forcedStop() }
    }
    guard stopsWhenVaultExpires else { return }
    let events = vault.lockEvents
    let task = Task.detached { [weak self] in
      for await event in events where [.timeout, .session].contains(event.reason) {
        await self?.forcedStop()
      }
    }
    expiry.withLock { $0 = task }
  }

  /// Says which engine has come of the start.
  func tie(_ engine: MessagingEngine) {
    self.engine.withLock { $0 = WeakEngine(engine: engine) }
  }

  /// Ends the engine, or the start of it; returns when its database is closed.
  private func forcedStop() async {
    let engine = engine.withLock { $0?.engine }
    if life.handle(.forcedStop(.vaultLocked)) == .closeDown, let engine {
      // What a stop would have thrown stands in the log.
      do throws(EngineError) {
        try await engine.closeDown()
      } catch {
        engine.configuration.logger.warning("locking: \(error)")
      }
    } else {
      await life.awaitEnd()
    }
  }

  deinit {
    expiry.withLock { $0 }?.cancel()
  }
}

private struct WeakEngine: Sendable {
  weak let engine: MessagingEngine?
}
