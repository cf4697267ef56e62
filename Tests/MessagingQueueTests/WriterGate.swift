import Foundation
import GRDB
import MessagingQueue
import Synchronization

/// Holds the writer of a pool until it is opened, so that callers gather.
final class WriterGate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let left = DispatchSemaphore(value: 0)

  /// - Parameter transaction: begun first and rolled back at the end, so that other connections
  ///   wait too.
  init(_ pool: any DatabaseWriter, holding transaction: String? = nil) {
    let (semaphore, left) = (semaphore, left)
    let entered = DispatchSemaphore(value: 0)
    pool.asyncWriteWithoutTransaction { db in
      if let transaction { try? db.execute(sql: transaction) }
      entered.signal()
      semaphore.wait()
      if transaction != nil { try? db.rollback() }
      left.signal()
    }
    entered.wait()
  }

  deinit { semaphore.signal() }

  /// Releases the writer; on return its transaction is rolled back.
  func open() {
    semaphore.signal()
    left.wait()
  }
}

/// Waits for a signal without a thread of the cooperative pool.
func wait(for semaphore: DispatchSemaphore) async {
  await withCheckedContinuation { continuation in
    DispatchQueue.global().async {
      semaphore.wait()
      continuation.resume()
    }
  }
}

/// The reports of commits, in their order.
final class Reports: Sendable {
  private let reports = Mutex<[CommitReport]>([])
  private let notes = Mutex(0)

  var operationCounts: [Int] { reports.withLock { $0.map(\.operationCount) } }

  var noteCount: Int { notes.withLock { $0 } }

  func note() {
    notes.withLock { $0 += 1 }
  }

  func append(_ report: CommitReport) {
    reports.withLock { $0.append(report) }
  }
}

/// The engine's error that `body` throws; nil for none, and for errors that are not the engine's.
func engineError(_ body: () async throws -> Void) async -> EngineError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? EngineError
  }
}

/// The code of that error.
func code(_ body: () async throws -> Void) async -> EngineError.Code? {
  await engineError(body)?.code
}
