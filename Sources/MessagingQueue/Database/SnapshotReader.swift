internal import Dispatch
package import GRDB
internal import Synchronization

/// Reads a pool in snapshots that hold up no writer, and knows when nobody reads any more.
///
/// GRDB's pool must not be closed while somebody begins to read it: `DatabasePool.close()` (7.10) takes
/// the reading connections away without a lock, and who has one in hand by then goes on with what is no
/// more. So whoever closes the pool closes this first.
package final class SnapshotReader: Sendable {
  private let pool: DatabasePool
  private let isClosed = Mutex(false)
  private let readers = DispatchGroup()

  package init(_ pool: DatabasePool) {
    self.pool = pool
  }

  /// Where the database is.
  var path: String { pool.path }

  /// Runs `body` on the caller's thread.
  ///
  /// - Throws: `stopped` once it is closed, and what reading throws.
  package func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    guard enter() else { throw EngineError.notRunning(.stopped) }
    defer { readers.leave() }
    return try pool.read(body)
  }

  /// Runs `body` on a thread of the pool, which may block; to the end, also for a caller that is cancelled.
  ///
  /// Who reads leaves once the pool has the connection back: what ``close()`` has waited for holds none, and
  /// the pool's writer can be the last to close.
  package func readAside<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    guard enter() else { throw EngineError.notRunning(.stopped) }
    defer { readers.leave() }
    return try await Task { [pool] in try await pool.read(body) }.value
  }

  /// Lets nobody begin any more, and blocks until all have ended.
  package func close() {
    isClosed.withLock { $0 = true }
    readers.wait()
  }

  /// In one step with the look, so that ``close()`` waits for everybody it has let in.
  private func enter() -> Bool {
    isClosed.withLock { isClosed in
      if !isClosed { readers.enter() }
      return !isClosed
    }
  }
}
