internal import Dispatch
package import GRDB
internal import Synchronization

/// Reads a pool in snapshots that block no writer, and counts its readers.
///
/// GRDB's pool must not be closed while a read begins. `DatabasePool.close()` (7.10) takes the
/// reading connections away without a lock, and a read that already has one continues with a
/// released connection. So close this reader before the pool.
package final class SnapshotReader: Sendable {
  private let pool: DatabasePool
  private let refusal: @Sendable () -> EngineError?
  private let isClosed = Mutex(false)
  private let readers = DispatchGroup()

  /// - Parameter refusal: why the engine takes no work; nil while it runs.
  package init(_ pool: DatabasePool, refusal: @escaping @Sendable () -> EngineError? = { nil }) {
    self.pool = pool
    self.refusal = refusal
  }

  /// Runs `body` in one snapshot, on a thread of the pool, which can block; it completes also if
  /// the caller is cancelled.
  ///
  /// The reader leaves after the pool has its connection back. So no connection is in use after
  /// ``close()``, and the pool's writer can be the last to close.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and the errors of reading.
  package func read<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(EngineError) -> Value {
    if let refusal = refusal() { throw refusal }
    do {
      try enter()
      defer { readers.leave() }
      return try await Task { [pool] in try await pool.read(body) }.value
    } catch {
      // A stop can close the pool during the read.
      throw refusal() ?? EngineError(translating: error, during: operation)
    }
  }

  /// Runs `body` on the caller's thread, for the notifier, which has one of its own.
  ///
  /// - Throws: `stopped` after ``close()``, and the errors of reading.
  package func readBlocking<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try enter()
    defer { readers.leave() }
    return try pool.read(body)
  }

  /// Lets no read begin any more, and blocks until all reads have ended.
  package func close() {
    isClosed.withLock { $0 = true }
    readers.wait()
  }

  /// In one step with the check, so that ``close()`` waits for every reader that was let in.
  private func enter() throws(EngineError) {
    let isClosed = isClosed.withLock { isClosed in
      if !isClosed { readers.enter() }
      return isClosed
    }
    if isClosed { throw .notRunning(.stopped) }
  }
}
