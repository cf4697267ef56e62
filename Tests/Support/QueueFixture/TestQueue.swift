import Foundation
package import FileLayer
package import GRDB
package import MessagingQueue
import Synchronization
import TestSupport

/// A ``MessagingEngine`` for a test that waits for each operation.
///
/// An operation runs on threads of its own, so a test can block the thread that calls it.
package final class TestQueue: Sendable {
  package let engine: MessagingEngine
  private let pool: DatabasePool

  package init(
    pool: DatabasePool, time: any TimeSource,
    configuration: EngineConfiguration = EngineConfiguration(),
    reportCommit: @escaping @Sendable (CommitReport) -> Void = { _ in }
  ) throws(EngineError) {
    self.pool = pool
    engine = try MessagingEngine(
      pool: pool, time: time, configuration: configuration, isSecured: false,
      reportCommit: reportCommit)
  }

  /// Runs one operation, and waits until it has returned.
  package func wait<Answer: Sendable>(
    _ body: @escaping @Sendable (MessagingEngine) async throws -> Answer
  ) throws -> Answer {
    try begin(body).wait()
  }

  /// Runs operations that wait together, in this order, so that they share a commit.
  package func together<Answer: Sendable>(
    _ bodies: [@Sendable (MessagingEngine) async throws -> Answer]
  ) throws -> [Result<Answer, any Error>] {
    let leave = DispatchSemaphore(value: 0)
    pool.asyncWriteWithoutTransaction { _ in leave.wait() }
    var calls: [Call<Answer>] = []
    do {
      defer { leave.signal() }
      for body in bodies {
        calls.append(begin(body))
        try eventually { engine.waitingCount >= calls.count }
      }
    }
    return calls.map { call in Result { try call.wait() } }
  }

  private func begin<Answer: Sendable>(
    _ body: @escaping @Sendable (MessagingEngine) async throws -> Answer
  ) -> Call<Answer> {
    let call = Call<Answer>()
    Task(executorPreference: Threads.shared) { [engine] in
      do {
        call.finish(.success(try await body(engine)))
      } catch {
        call.finish(.failure(error))
      }
    }
    return call
  }
}

/// The operations, under their names in ``MessagingEngine``.
extension TestQueue {
  @discardableResult
  package func publish(_ messages: [Message]) throws -> [Timetoken] {
    try wait { try await $0.publish(messages) }
  }

  package func receive(
    from channel: Channel, for consumer: Consumer = .default, maximumCount: Int, lease: Duration
  ) throws -> [Delivery] {
    try wait {
      try await $0.receive(from: channel, for: consumer, maximumCount: maximumCount, lease: lease)
    }
  }

  package func acknowledge(_ tokens: [LeaseToken]) throws {
    try wait { try await $0.acknowledge(tokens) }
  }

  package func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true
  ) throws {
    _ = try wait {
      try await $0.release(tokens, after: delay, reason: reason, countsAttempt: countsAttempt)
    }
  }

  package func reject(_ tokens: [LeaseToken], reason: String) throws {
    try wait { try await $0.reject(tokens, reason: reason) }
  }

  package func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int? = nil
  ) throws {
    try wait {
      try await $0.addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts)
    }
  }

  /// On the calling thread: a read of the engine needs the cooperative pool.
  package func statistics() throws -> EngineStatistics {
    try pool.read { db in try engine.tables.statistics(db) }
  }
}

/// An operation under way.
private final class Call<Answer: Sendable>: Sendable {
  private let result = Mutex<Result<Answer, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  func finish(_ result: Result<Answer, any Error>) {
    self.result.withLock { $0 = result }
    done.signal()
  }

  func wait() throws -> Answer {
    done.wait()
    guard let result = result.withLock({ $0 }) else { preconditionFailure("signalled unfinished") }
    return try result.get()
  }
}

/// Runs tasks outside the cooperative pool, as the tests can hold all of its threads.
private final class Threads: TaskExecutor {
  static let shared = Threads()
  private let queue = DispatchQueue(label: "test-queue", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
