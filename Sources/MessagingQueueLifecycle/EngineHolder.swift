internal import MessagingQueue
internal import Synchronization

/// Holds a service's engine, and lets callers wait for it.
final class EngineHolder: Sendable {
  private typealias Caller = CheckedContinuation<Result<MessagingEngine, EngineError>, Never>

  private struct Content {
    var stateStore: EngineStateStore?
    var engine: MessagingEngine?
    /// Why there will be no more engine.
    var end: EngineError?
    var callers: [UInt64: Caller] = [:]
    var nextNumber: UInt64 = 0

    var runningEngine: MessagingEngine? { engine?.state == .running ? engine : nil }
  }

  private let content = Mutex(Content())

  var state: EngineState { content.withLock { $0.stateStore?.state ?? .stopped } }

  var runningEngine: MessagingEngine? { content.withLock(\.runningEngine) }

  /// Begins a start; the last engine has ended.
  func begin(_ stateStore: EngineStateStore) {
    content.withLock { content in
      content.stateStore = stateStore
      content.engine = nil
    }
  }

  func run(_ engine: MessagingEngine) {
    answer(.success(engine)) { $0.engine = engine }
  }

  /// - Parameter error: nil after a stop.
  func end(_ error: EngineError?) {
    let error = error ?? Self.stopped
    answer(.failure(error)) { content in
      content.engine = nil
      content.end = error
    }
  }

  private static let stopped = EngineError(
    .stopped, "the message service has ended", hint: "make another")

  private func answer(
    _ result: Result<MessagingEngine, EngineError>, _ change: (inout Content) -> Void
  ) {
    let callers = content.withLock { content in
      change(&content)
      defer { content.callers = [:] }
      return content.callers.values.map { $0 }
    }
    for caller in callers { caller.resume(returning: result) }
  }

  /// Waits until an engine runs, or none ever will.
  func engine() async throws(EngineError) -> MessagingEngine {
    let number = content.withLock { content in
      content.nextNumber += 1
      return content.nextNumber
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (caller: Caller) in
        if let result = enter(caller, number) { caller.resume(returning: result) }
        // The handler can have run before the caller was in the list.
        if Task.isCancelled { cancel(number) }
      }
    } onCancel: {
      cancel(number)
    }
    return try result.get()
  }

  private func enter(
    _ caller: Caller, _ number: UInt64
  ) -> Result<MessagingEngine, EngineError>? {
    content.withLock { content in
      if let end = content.end { return .failure(end) }
      if let engine = content.runningEngine { return .success(engine) }
      content.callers[number] = caller
      return nil
    }
  }

  private func cancel(_ number: UInt64) {
    content.withLock { $0.callers.removeValue(forKey: number) }?
      .resume(returning: .failure(EngineError(.cancelled, "waiting for the engine was cancelled")))
  }
}
