internal import DataVault
internal import FileLayer
internal import GRDB
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
    guard stateStore.handle(.stop) == .closeDown else { return await stateStore.awaitEnd() }
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
      if anchors.hasNews { configuration.warnOfMissingAnchor() }
    }
    let box = Outcome()
    let closing = Task {
      do throws(EngineError) {
        try await self.closeConnections()
      } catch {
        box.error.withLock { $0 = error }
      }
    }
    var isClosed = await completes(within: max(deadline - .now, .seconds(1))) {
      await closing.value
    }
    if !isClosed {
      tables.pool.interrupt()
      isClosed = await completes(within: .seconds(1)) { await closing.value }
    }
    // Commands are shorter than the interval of maintenance.
    reserve?.makeForLargeDatabase()
    socket.withLock { $0.take() }?.close()
    _ = stateStore.handle(.closed)
    // It has the engine, and keys.
    attachedReplica.withLock { $0 = nil }
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
