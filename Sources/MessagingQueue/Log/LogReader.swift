package import GRDB

/// Reads the log beside the engine's own thread, in snapshots that hold up no writer.
package final class LogReader: Sendable {
  let bell: ChangeBell
  private let pool: DatabasePool
  private let isLockedOut: @Sendable () -> Bool

  package init(
    pool: DatabasePool, bell: ChangeBell, isLockedOut: @escaping @Sendable () -> Bool = { false }
  ) {
    self.pool = pool
    self.bell = bell
    self.isLockedOut = isLockedOut
  }

  /// Runs `body` in one snapshot, on a thread of the pool that may block.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and what reading throws.
  func read<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(EngineError) -> Value {
    if bell.isStopped { throw .stopped }
    if isLockedOut() { throw .lockedFromOutside }
    let result: Result<Value, EngineError> = await withCheckedContinuation { continuation in
      pool.asyncRead { access in
        let result = Result { () throws(EngineError) -> Value in
          try translatingErrors(during: operation) { try body(access.get()) }
        }
        continuation.resume(returning: result)
      }
    }
    // The pool was closed under the read.
    if case .failure = result, bell.isStopped { throw .stopped }
    return try result.get()
  }
}
