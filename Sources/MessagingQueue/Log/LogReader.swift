internal import GRDB

/// Reads the log beside the engine's own thread, in snapshots that hold up no writer.
package final class LogReader: Sendable {
  let bell: ChangeBell
  private let snapshots: SnapshotReader
  private let refusal: @Sendable () -> EngineError?

  /// - Parameter refusal: why no work is taken; nil while it is.
  package init(
    _ snapshots: SnapshotReader, bell: ChangeBell, refusal: @escaping @Sendable () -> EngineError?
  ) {
    self.snapshots = snapshots
    self.bell = bell
    self.refusal = refusal
  }

  /// Runs `body` in one snapshot, on a thread of the pool that may block.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and what reading throws.
  func read<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(EngineError) -> Value {
    if let refusal = refusal() { throw refusal }
    let result: Result<Value, EngineError> = await withCheckedContinuation { continuation in
      snapshots.read { access in
        let result = Result { () throws(EngineError) -> Value in
          try translatingErrors(during: operation) { try body(access.get()) }
        }
        continuation.resume(returning: result)
      }
    }
    // The pool was closed under the read.
    if case .failure = result, let refusal = refusal() { throw refusal }
    return try result.get()
  }
}
