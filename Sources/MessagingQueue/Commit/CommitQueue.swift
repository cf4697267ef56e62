package import GRDB
internal import Synchronization

/// Lets callers that wait at the same time share one commit, and so one sync of the disk.
///
/// If no transaction runs, an operation is committed immediately, alone. Operations that come
/// during a commit form the next transaction together, in the order in which they came; see
/// ``CommitGroup``. The work runs on the queue of the pool's writer, between the transactions of
/// other callers.
package final class CommitQueue: Sendable {
  private struct State {
    var waiting = PendingWriteQueue()
    var lastNumber: UInt64 = 0
    /// Whether a transaction runs or is about to run.
    var isDraining = false
    /// Why the queue takes no more operations; nil while it does.
    var refusal: EngineError?
    var drainWaiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())
  private let pool: DatabasePool
  private let didCommit: @Sendable (CommitReport) -> Void

  /// - Parameter didCommit: called on the writer's queue after every commit that changed something,
  ///   before its callers resume.
  package init(
    _ pool: DatabasePool, didCommit: @escaping @Sendable (CommitReport) -> Void = { _ in }
  ) {
    self.pool = pool
    self.didCommit = didCommit
  }

  /// Operations that no transaction has taken yet.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Whether the queue takes no more operations.
  package var isClosed: Bool { state.withLock { $0.refusal != nil } }

  /// Runs an operation in a transaction that it can share, and returns after the commit.
  ///
  /// If the task is cancelled before its transaction has begun, the operation never runs. A later
  /// cancellation has no effect.
  ///
  /// - Parameters:
  ///   - byteCount: about how much it writes.
  ///   - isDurable: whether it is on the disk on return. Otherwise the end of the process loses nothing, and a power cut
  ///     can lose it until a later commit is durable.
  ///   - write: can run more than once, each time on a database without a trace of the last run.
  /// - Throws: the error of `write`; `cancelled`; `outcomeUnknown` if the commit met an I/O error;
  ///   `busy`, `diskFull` and the like if nothing was changed.
  package func run<Result: Sendable>(
    during operation: String, byteCount: Int = 0, isDurable: Bool = true,
    _ write: @escaping @Sendable (Database) throws -> Result
  ) async throws(EngineError) -> Result {
    try await run(
      during: operation, byteCount: byteCount, isDurable: isDurable, publishing: nil
    ) { db, _ in
      try write(db)
    }
  }

  /// Publishes messages; see ``run(during:byteCount:isDurable:_:)``.
  package func publish(
    _ messages: [Message], on tables: EngineDatabase
  ) async throws(EngineError) -> [Timetoken] {
    let byteCount = messages.reduce(0) { $0 + $1.byteCount }
    return try await run(
      during: "publishing", byteCount: byteCount, isDurable: true, publishing: messages
    ) { db, publication in
      try tables.publish(messages, in: &publication, db)
    }
  }

  private func run<Result: Sendable>(
    during operation: String, byteCount: Int, isDurable: Bool, publishing messages: [Message]?,
    _ write: @escaping @Sendable (Database, inout Publication?) throws -> Result
  ) async throws(EngineError) -> Result {
    if Task.isCancelled { throw .cancelled(during: operation) }
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation {
        (caller: CheckedContinuation<Swift.Result<Result, EngineError>, Never>) in
        enqueue(
          PendingWrite(
            number: number, operation: operation, byteCount: byteCount, isDurable: isDurable,
            messages: messages,
            perform: { db, publication in
              let result = try write(db, &publication)
              return { caller.resume(returning: .success(result)) }
            },
            fail: { caller.resume(returning: .failure($0)) }))
        // The handler can have run before the operation was in the queue.
        if Task.isCancelled { cancel(number) }
      }
    } onCancel: {
      cancel(number)
    }
    return try result.get()
  }

  /// Takes no more operations, and returns after all earlier ones are committed or have failed.
  package func close(refusing refusal: EngineError) async {
    await withCheckedContinuation { waiter in
      let isIdle = state.withLock { state in
        state.refusal = state.refusal ?? refusal
        if state.isDraining { state.drainWaiters.append(waiter) }
        return !state.isDraining
      }
      if isIdle { waiter.resume() }
    }
  }

  /// Fails the operations that no transaction has taken yet.
  func failWaiting(_ error: EngineError) {
    for write in state.withLock({ $0.waiting.removeAll(through: .max) }) { write.fail(error) }
  }

  private func enqueue(_ write: PendingWrite) {
    let (refusal, isFirst) = state.withLock { state -> (EngineError?, Bool) in
      if let refusal = state.refusal { return (refusal, false) }
      state.waiting.append(write)
      defer { state.isDraining = true }
      return (nil, !state.isDraining)
    }
    if let refusal { return write.fail(refusal) }
    if isFirst { drain() }
  }

  private func cancel(_ number: UInt64) {
    if let write = state.withLock({ $0.waiting.remove(number) }) {
      write.fail(.cancelled(during: write.operation))
    }
  }

  // MARK: On the writer's queue

  /// Runs one transaction, and then the next while operations wait.
  private func drain() {
    pool.asyncWriteWithoutTransaction { db in
      self.commitNext(db)
      if self.goesOn() { self.drain() }
    }
  }

  /// Whether operations wait; if not, the callers of ``close(refusing:)`` resume.
  private func goesOn() -> Bool {
    let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
      guard state.waiting.isEmpty else { return nil }
      state.isDraining = false
      defer { state.drainWaiters = [] }
      return state.drainWaiters
    }
    guard let waiters else { return true }
    for waiter in waiters { waiter.resume() }
    return false
  }

  private func commitNext(_ db: Database) {
    let ends = state.withLock { state in
      state.waiting.last.flatMap { last in state.waiting.first.map { (first: $0, last: last) } }
    }
    guard let (first, last) = ends else { return }
    do throws(TransactionFailure) {
      // What must be durable does not wait with what need not be, nor the other way round.
      let lost = try commit(db, isDurable: first.isDurable) {
        state.withLock {
          $0.waiting.first?.isDurable == first.isDurable ? $0.waiting.popFirst() : nil
        }
      }
      // SQLite undid these operations through another's fault: each gets a transaction of its own.
      for write in lost { commitAlone(write, db) }
    } catch {
      // Later operations have not waited for the other process yet.
      for write in state.withLock({ $0.waiting.removeAll(through: last.number) }) {
        write.fail(EngineError(translating: error, during: write.operation))
      }
    }
  }

  private func commitAlone(_ write: PendingWrite, _ db: Database) {
    var next: PendingWrite? = write
    do throws(TransactionFailure) {
      _ = try commit(db, isDurable: write.isDurable) { next.take() }
    } catch {
      write.fail(EngineError(translating: error, during: write.operation))
    }
  }

  /// Commits the operations from `next`, as far as they fit, and resumes their callers, except for
  /// those it returns.
  ///
  /// - Returns: operations of a transaction that was lost through another's fault.
  /// - Throws: if the transaction could not begin; it has then taken no operation.
  private func commit(
    _ db: Database, isDurable: Bool, next: () -> PendingWrite?
  ) throws(TransactionFailure) -> [PendingWrite] {
    var group = CommitGroup()
    let start = ContinuousClock.now
    var end = start
    do throws(TransactionFailure) {
      try db.inImmediateTransaction(isDurable: isDurable) {
        while !group.isFull, let write = next() { try group.add(write, db) }
        try group.finish(db)
        end = .now
      }
    } catch {
      switch error {
      case .beginning: throw error
      case .working(is TransactionRolledBack): return group.done.map(\.write)
      case .working, .committing:
        group.fail { EngineError(translating: error, during: $0.operation) }
      }
      return []
    }
    if group.hasChanges {
      didCommit(
        CommitReport(
          operationCount: group.done.count, workTime: start.duration(to: end),
          commitTime: end.duration(to: .now)))
    }
    group.succeed()
    return []
  }
}

extension EngineError {
  static func cancelled(during operation: String) -> EngineError {
    EngineError(
      .cancelled, "\(operation) was cancelled; nothing was changed", hint: "call it again")
  }
}

/// The measurements of one commit of the engine.
package struct CommitReport: Sendable {
  /// Operations that shared it.
  package let operationCount: Int
  /// From the wait for the write lock to the last statement.
  package let workTime: Duration
  /// The duration of the commit itself: its writes and its sync.
  package let commitTime: Duration
}
