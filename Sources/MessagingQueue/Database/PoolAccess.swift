internal import Dispatch
package import GRDB
internal import Synchronization

/// Runs reads and writes on a pool and counts them, so that the pool closes only after the last.
///
/// GRDB's pool must not be closed while a read begins. `DatabasePool.close()` (7.10) takes the
/// reading connections away without a lock, and a read that already has one continues with a
/// released connection. So close this access before the pool. Reads use a snapshot and block no
/// writer.
package final class PoolAccess: Sendable {
  private let pool: DatabasePool
  private let refusal: @Sendable () -> EngineError?
  private let isClosed = Mutex(false)
  private let users = DispatchGroup()

  /// - Parameter refusal: why the engine takes no work; nil while it runs.
  package init(_ pool: DatabasePool, refusal: @escaping @Sendable () -> EngineError? = { nil }) {
    self.pool = pool
    self.refusal = refusal
  }

  /// Runs a read of the engine's own in one snapshot, on a thread of the pool, which can block.
  ///
  /// It completes also if the caller is cancelled.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and the errors of reading.
  package func read<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(EngineError) -> Value {
    try await translating(during: operation) { pool in try await pool.read(body) }
  }

  /// Runs `body` of the engine's own on the writer's connection, outside a transaction.
  ///
  /// It completes also if the caller is cancelled.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and the errors of writing.
  package func onWriter(
    during operation: String, _ body: @escaping @Sendable (Database) throws -> Void
  ) async throws(EngineError) {
    try await translating(during: operation) { pool in
      try await pool.writeWithoutTransaction(body)
    }
  }

  /// Runs a read of the engine's caller in one snapshot; see ``MessagingEngine/read(_:)``.
  package func read<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await passingErrors(during: "reading") { pool in try await pool.read(body) }
  }

  /// Runs a transaction of the engine's caller; see ``MessagingEngine/write(_:)``.
  package func write<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await passingErrors(during: "writing") { [refusal] pool in
      try await pool.writeWithoutTransaction { db in
        // It has possibly waited behind other writes.
        if let refusal = refusal() { throw refusal }
        return try db.inImmediateTransaction { try body(db) }
      }
    }
  }

  /// Runs `body` on the caller's thread, for the notifier, which has one of its own.
  ///
  /// - Throws: `stopped` after ``close()``, and the errors of reading.
  package func readBlocking<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try enter()
    defer { users.leave() }
    return try pool.read(body)
  }

  /// Runs `body`, which uses the pool, so that ``close()`` waits for its end.
  package func hold(_ body: () async throws -> Void) async throws {
    try enter()
    defer { users.leave() }
    try await body()
  }

  /// Lets nothing begin any more, and blocks until all reads and writes have ended.
  package func close() {
    isClosed.withLock { $0 = true }
    users.wait()
  }

  /// Runs `body` on the pool, and counts it.
  ///
  /// The user leaves after the pool has its connection back. So no connection is in use after
  /// ``close()``, and the pool's writer can be the last to close.
  private func use<Value: Sendable>(
    _ body: @escaping @Sendable (DatabasePool) async throws -> Value
  ) async throws -> Value {
    if let refusal = refusal() { throw refusal }
    try enter()
    defer { users.leave() }
    // A task of its own: GRDB returns to a cancelled caller before the connection is free.
    return try await Task { [pool] in try await body(pool) }.value
  }

  /// Throws every error as an ``EngineError``.
  private func translating<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (DatabasePool) async throws -> Value
  ) async throws(EngineError) -> Value {
    do {
      return try await use(body)
    } catch {
      // A stop can interrupt it.
      throw refusal() ?? EngineError(translating: error, during: operation)
    }
  }

  /// Throws the caller's own errors unchanged, and those of the engine as ``EngineError``.
  private func passingErrors<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (DatabasePool) async throws -> Value
  ) async throws -> Value {
    if Task.isCancelled { throw EngineError.cancelled(during: operation) }
    do {
      return try await use(body)
    } catch TransactionFailure.working(let error) {
      throw interruption(error) ?? error
    } catch TransactionFailure.committing(let error as DatabaseError)
      where error.resultCode == .SQLITE_CONSTRAINT
    {
      // A deferred constraint of the caller's own tables.
      throw error
    } catch let failure as TransactionFailure {
      throw EngineError(translating: failure, during: operation)
    } catch {
      throw interruption(error) ?? error
    }
  }

  /// Why the engine stops, if it interrupted a statement that threw this error.
  private func interruption(_ error: any Error) -> EngineError? {
    let codes: [ResultCode] = [.SQLITE_INTERRUPT, .SQLITE_ABORT]
    guard let error = error as? DatabaseError, codes.contains(error.resultCode) else { return nil }
    return refusal()
  }

  /// In one step with the check, so that ``close()`` waits for everyone who was let in.
  private func enter() throws(EngineError) {
    let isClosed = isClosed.withLock { isClosed in
      if !isClosed { users.enter() }
      return isClosed
    }
    if isClosed { throw refusal() ?? .notRunning(.stopped) }
  }
}
