internal import NIOCore

/// Runs a task on the event loop of its connection, which spares it two changes of threads.
///
/// It is for tasks that only wait: what takes long would hold up the other connections.
final class EventLoopExecutor: TaskExecutor {
  private let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    // A job's task keeps its executor alive.
    eventLoop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
