package import GRDB
internal import Synchronization

/// Lets callers that wait at the same time share one commit, and so one sync of the disk.
///
/// A verb that comes while nothing runs is committed at once, alone. While it is, others gather and
/// make the next transaction together, in the order in which they came; see ``CommitGroup``. The work
/// is done on the queue of the pool's writer, between the transactions that others run there.
package final class CommitQueue: Sendable {
  private struct State {
    var waiting = PendingWriteQueue()
    var lastNumber: UInt64 = 0
    /// Whether a transaction runs or is about to.
    var isDraining = false
    /// Why nothing more is taken.
    var refusal: EngineError?
    var drainWaiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())
  private let pool: DatabasePool
  private let didCommit: @Sendable (CommitReport) -> Void

  /// - Parameter didCommit: told of every commit that changed something, before its callers are; on
  ///   the writer's queue.
  package init(
    _ pool: DatabasePool, didCommit: @escaping @Sendable (CommitReport) -> Void = { _ in }
  ) {
    self.pool = pool
    self.didCommit = didCommit
  }

  /// Verbs that no transaction has taken yet.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Whether it takes nothing more.
  package var isClosed: Bool { state.withLock { $0.refusal != nil } }

  /// Runs a verb in a transaction that it may share, and returns when that is committed.
  ///
  /// Cancelled before its transaction has begun, it is never run; afterwards it is too late.
  ///
  /// - Parameters:
  ///   - byteCount: about how much it writes.
  ///   - verb: may run more than once, each time on a database without a trace of the one before.
  /// - Throws: what the verb throws; `cancelled`; `outcomeUnknown` when the commit met an I/O error,
  ///   `busy`, `diskFull` and the like when nothing was changed.
  package func run<Result: Sendable>(
    during operation: String, byteCount: Int = 0,
    _ verb: @escaping @Sendable (Database) throws -> Result
  ) async throws(EngineError) -> Result {
    try await run(during: operation, byteCount: byteCount, publishing: nil) { db, _ in
      try verb(db)
    }
  }

  /// Publishes messages, as ``run(during:byteCount:_:)`` does anything else.
  package func publish(
    _ messages: [Message], on tables: EngineDatabase
  ) async throws(EngineError) -> [Timetoken] {
    let byteCount = messages.reduce(0) { $0 + $1.byteCount }
    return try await run(during: "publishing", byteCount: byteCount, publishing: messages) {
      db, publication in
      try tables.publish(messages, in: &publication, db)
    }
  }

  private func run<Result: Sendable>(
    during operation: String, byteCount: Int, publishing messages: [Message]?,
    _ verb: @escaping @Sendable (Database, inout Publication?) throws -> Result
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
            number: number, operation: operation, byteCount: byteCount, messages: messages,
            perform: { db, publication in
              let result = try verb(db, &publication)
              return { caller.resume(returning: .success(result)) }
            },
            fail: { caller.resume(returning: .failure($0)) }))
        // The handler may have come before the verb was there to be taken out.
        if Task.isCancelled { cancel(number) }
      }
    } onCancel: {
      cancel(number)
    }
    return try result.get()
  }

  /// Takes nothing more, and returns when all that was taken before is committed or has failed.
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

  /// Gives up what no transaction has taken yet.
  func failWaiting(_ error: EngineError) {
    for verb in takeAll(through: .max) { verb.fail(error) }
  }

  private func enqueue(_ verb: PendingWrite) {
    let (refusal, isFirst) = state.withLock { state -> (EngineError?, Bool) in
      if let refusal = state.refusal { return (refusal, false) }
      state.waiting.append(verb)
      defer { state.isDraining = true }
      return (nil, !state.isDraining)
    }
    if let refusal { return verb.fail(refusal) }
    if isFirst { drain() }
  }

  private func cancel(_ number: UInt64) {
    if let verb = state.withLock({ $0.waiting.remove(number) }) {
      verb.fail(.cancelled(during: verb.operation))
    }
  }

  // MARK: On the writer's queue

  /// Has one transaction run, and after it the next while somebody waits.
  private func drain() {
    pool.asyncWriteWithoutTransaction { db in
      self.commitNext(db)
      if self.goesOn() { self.drain() }
    }
  }

  /// Whether somebody waits; who waits for the end is told otherwise.
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
    guard let last = state.withLock({ $0.waiting.last?.number }) else { return }
    do throws(TransactionFailure) {
      let lost = try commit(db) { self.takeNext() }
      // SQLite took their work along with another's fault: each gets a transaction of its own.
      for verb in lost { commitAlone(verb, db) }
    } catch {
      // Whoever came after that has not waited for the other process yet.
      for verb in takeAll(through: last) { verb.fail(EngineError(error, during: verb.operation)) }
    }
  }

  private func commitAlone(_ verb: PendingWrite, _ db: Database) {
    var next: PendingWrite? = verb
    do throws(TransactionFailure) {
      _ = try commit(db) { next.take() }
    } catch {
      verb.fail(EngineError(error, during: verb.operation))
    }
  }

  /// Commits what `next` gives, as far as it fits, and tells all but those it returns.
  ///
  /// - Returns: verbs of a transaction that was lost to another's fault.
  /// - Throws: when the transaction could not begin; nothing has been taken then.
  private func commit(
    _ db: Database, next: () -> PendingWrite?
  ) throws(TransactionFailure) -> [PendingWrite] {
    var group = CommitGroup()
    let start = ContinuousClock.now
    var end = start
    do throws(TransactionFailure) {
      try db.inImmediateTransaction {
        while !group.isFull, let verb = next() { try group.add(verb, db) }
        try group.finish(db)
        end = .now
      }
    } catch {
      switch error {
      case .beginning: throw error
      case .working(is TransactionRolledBack): return group.done.map(\.verb)
      case .working, .committing: group.fail { EngineError(error, during: $0.operation) }
      }
      return []
    }
    if group.hasChanges {
      didCommit(
        CommitReport(
          verbCount: group.done.count, workTime: start.duration(to: end),
          commitTime: end.duration(to: .now)))
    }
    group.succeed()
    return []
  }

  private func takeNext() -> PendingWrite? {
    state.withLock { $0.waiting.popFirst() }
  }

  private func takeAll(through last: UInt64) -> [PendingWrite] {
    state.withLock { $0.waiting.removeAll(through: last) }
  }
}

extension EngineError {
  fileprivate static func cancelled(during operation: String) -> EngineError {
    EngineError(
      .cancelled, "\(operation) was cancelled; nothing was changed", hint: "call it again")
  }
}

/// What a commit of the engine was like.
package struct CommitReport: Sendable {
  /// Verbs that shared it.
  package let verbCount: Int
  /// From the wait for the write lock to the last statement.
  package let workTime: Duration
  /// The commit itself: the writes and the sync.
  package let commitTime: Duration
}

/// Verbs in the order in which they came; taking the first costs the same however many there are.
struct PendingWriteQueue {
  private(set) var verbs: [PendingWrite?] = []
  /// Where the first one is; what lies before has been taken.
  private var start = 0

  var isEmpty: Bool { start == verbs.count }
  var count: Int { verbs.count - start }
  var last: PendingWrite? { isEmpty ? nil : verbs[verbs.count - 1] }

  mutating func append(_ verb: PendingWrite) { verbs.append(verb) }

  mutating func popFirst() -> PendingWrite? {
    if isEmpty { return nil }
    let first = verbs[start].take()
    start += 1
    // Moving the rest once for each half that has gone costs a move for each verb.
    if start * 2 >= verbs.count {
      verbs.removeFirst(start)
      start = 0
    }
    return first
  }

  /// Takes out the one with this number; nil if it is not there.
  mutating func remove(_ number: UInt64) -> PendingWrite? {
    guard let index = verbs[start...].firstIndex(where: { $0?.number == number }) else {
      return nil
    }
    return verbs.remove(at: index)
  }

  /// Takes out the first ones, as long as their numbers are not beyond this one.
  mutating func removeAll(through last: UInt64) -> [PendingWrite] {
    var taken: [PendingWrite] = []
    while !isEmpty, let next = verbs[start], next.number <= last, let verb = popFirst() {
      taken.append(verb)
    }
    return taken
  }
}

/// What a caller wants done in a transaction, while it waits for the commit.
struct PendingWrite: Sendable {
  /// Rises with every verb that was handed in.
  let number: UInt64

  /// What is being done, for errors.
  let operation: String

  /// About how much it writes.
  let byteCount: Int

  /// The messages it publishes; nil if it does anything else.
  let messages: [Message]?

  /// Does it, and returns what tells the caller of its success once that is committed.
  ///
  /// What is published goes into the publication that the transaction's verbs share. May run again, in
  /// another transaction, when the first one was lost to somebody else's fault.
  let perform: @Sendable (Database, inout Publication?) throws -> @Sendable () -> Void

  /// Tells the caller why not.
  let fail: @Sendable (EngineError) -> Void
}
