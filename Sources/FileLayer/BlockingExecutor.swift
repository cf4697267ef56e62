internal import Dispatch

/// Runs work that blocks on a thread of its own, and returns its result.
///
/// - Parameter label: the name of the queue in a debugger.
package func onBlockingThread<Value: Sendable, Failure: Error>(
  _ label: String, _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
  try await BlockingWork(label).run(work)
}

/// One piece of work on a thread of its own.
private actor BlockingWork: BlockingActor {
  let executor: BlockingExecutor

  init(_ label: String) { executor = BlockingExecutor(label: label) }

  func run<Value: Sendable, Failure: Error>(
    _ work: @Sendable () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try work()
  }
}

/// An actor whose work blocks: key derivation, flock, fsync, SQLite.
///
/// The cooperative pool has as many threads as there are cores and must never wait for a disk.
package protocol BlockingActor: Actor {
  /// The actor's own executor.
  nonisolated var executor: BlockingExecutor { get }
}

extension BlockingActor {
  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }
}

/// A serial executor with a thread that can block; see ``BlockingActor``.
package final class BlockingExecutor: SerialExecutor {
  private let queue: DispatchQueue

  /// - Parameter label: the name of the queue in a debugger.
  package init(label: String) {
    queue = DispatchQueue(label: label)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
