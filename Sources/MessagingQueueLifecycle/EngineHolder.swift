internal import MessagingQueue
internal import Synchronization

/// Where a service puts its engine, for those who wait for it.
final class EngineHolder: Sendable {
  private typealias Caller = CheckedContinuation<Result<MessagingEngine, EngineError>, Never>

  private struct Content {
    var life: EngineStateStore?
    var engine: MessagingEngine?
    /// Why there will be no engine any more.
    var end: EngineError?
    var callers: [UInt64: Caller] = [:]
    var nextNumber: UInt64 = 0

    var runningEngine: MessagingEngine? { engine?.state == .running ? engine : nil }
  }

  private let content = Mutex(Content())

  var state: EngineState { content.withLock { $0.life?.state ?? .stopped } }

  var runningEngine: MessagingEngine? { content.withLock(\.runningEngine) }

  /// An engine is being started; the one before has ended.
  func begin(_ life: EngineStateStore) {
    content.withLock { content in
      content.life = life
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

  /// Waits until there is an engine that runs, or never will be.
  func engine() async throws(EngineError) -> MessagingEngine {
    let number = content.withLock { content in
      content.nextNumber += 1
      return content.nextNumber
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (caller: Caller) in
        if let result = enter(caller, number) { caller.resume(returning: result) }
        // The handler may have come before the caller was there to be found.
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
