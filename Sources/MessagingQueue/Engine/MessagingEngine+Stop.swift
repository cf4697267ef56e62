internal import DataVault
internal import FileLayer
internal import GRDB
internal import Logging
internal import Synchronization

extension MessagingEngine {
  /// The engine's current state.
  public var state: EngineState { stateStore.state }

  /// The current state and each later one, as long as the engine exists.
  ///
  /// A slow reader gets the last 16.
  public var states: AsyncStream<EngineState> { stateStore.states }

  /// Stops the engine: every later call throws `stopped`.
  ///
  /// For up to ``EngineConfiguration/stopTimeout``, calls that wait for their commit still get it.
  /// Then the engine records the rollback anchor and closes the database. Leases keep their end. A
  /// second call waits for the first.
  ///
  /// - Throws: `busy` if the database is still in use after that time: the engine has stopped, and
  ///   the database closes when its last read ends. `inputOutput`.
  public func stop() async throws(EngineError) {
    try await end(after: .stop)
  }

  /// Stops the engine for a reason outside it, and returns when its database is closed.
  func forcedStop(_ code: EngineError.Code) async throws(EngineError) {
    try await end(after: .forcedStop(code))
  }

  /// Carries out what ``EngineStateMachine`` says about an end.
  func end(after event: EngineStateMachine.Event) async throws(EngineError) {
    guard stateStore.handle(event) == .closeDown else { return await stateStore.awaitEnd() }
    try await closeDown()
  }

  /// Finishes the work and closes the database; called once for each engine.
  func closeDown() async throws(EngineError) {
    let deadline = ContinuousClock.now + configuration.stopTimeout
    let refusal = EngineError.notRunning(stateStore.refusal ?? .stopped)
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
    _ = stateStore.handle(.closed)
    if let error = box.error.withLock({ $0 }) { throw error }
    guard isClosed else {
      throw EngineError(
        .busy, "the message database is still being read; it closes when that ends",
        hint: "end what reads before the engine")
    }
  }
}

/// Holds the error of a task that the caller possibly no longer awaits.
private final class Outcome: Sendable {
  let error = Mutex<EngineError?>(nil)
}

extension EngineError {
  /// The error of a call on an engine that does not run.
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

/// Ends an engine when its vault is locked.
///
/// It exists before the engine, so that a lock during a start ends the start too.
final class VaultLockObserver: Sendable {
  private let stateStore: EngineStateStore
  private let engine = Mutex<WeakEngine?>(nil)
  private let dependency = Mutex<VaultDependency?>(nil)
  private let expiry = Mutex<Task<Void, Never>?>(nil)

  init(_ vault: Vault, _ stateStore: EngineStateStore, stopsWhenVaultExpires: Bool) {
    self.stateStore = stateStore
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

  /// Gives the observer the engine that the start has made.
  func attach(_ engine: MessagingEngine) {
    self.engine.withLock { $0 = WeakEngine(engine: engine) }
  }

  /// Ends the engine or its start; returns when its database is closed.
  private func forcedStop() async {
    let engine = engine.withLock { $0?.engine }
    if stateStore.handle(.forcedStop(.vaultLocked)) == .closeDown, let engine {
      // Nothing catches an error here, so the log gets it.
      do throws(EngineError) {
        try await engine.closeDown()
      } catch {
        engine.configuration.logger.warning("locking: \(error)")
      }
    } else {
      await stateStore.awaitEnd()
    }
  }

  deinit {
    expiry.withLock { $0 }?.cancel()
  }
}

private struct WeakEngine: Sendable {
  weak let engine: MessagingEngine?
}
