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
    do {
      return try await snapshots.readAside(body)
    } catch {
      // The pool was closed under the read.
      throw refusal() ?? EngineError(translating: error, during: operation)
    }
  }
}
