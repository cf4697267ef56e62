internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import Synchronization

/// Keeps each application within the age and the bytes that it can store.
///
/// Messages that are too old are removed. Above the bytes, publishing is refused until some are.
final class ApplicationQuotas: Sendable {
  private let storedBytes = Mutex<[String: Int]>([:])

  /// Counts a message that is about to be published; false if the application has no room for it.
  func take(_ byteCount: Int, of entry: DirectoryEntry) -> Bool {
    storedBytes.withLock { stored in
      let sum = stored[entry.record.name, default: 0] + byteCount
      guard sum <= entry.record.retention.byteCount else { return false }
      stored[entry.record.name] = sum
      return true
    }
  }

  /// Removes what is too old, and counts what is stored.
  func sweep(
    _ applications: [DirectoryEntry], in engine: MessagingEngine, at now: Date
  ) async throws(EngineError) {
    for entry in applications {
      let age = Double(entry.record.retention.minutes) * 60
      _ = try await engine.sweepApplication(
        named: entry.record.name, before: Timetoken(now.addingTimeInterval(-age)))
    }
    let sizes = try await engine.applicationSizes()
    storedBytes.withLock { $0 = sizes.mapValues(\.byteCount) }
  }
}
