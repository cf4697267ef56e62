internal import Logging
internal import MessagingQueue
internal import Synchronization

/// The workers of a service on one engine: carries out the actions of ``WorkerSchedule``.
final class WorkerSession: Sendable {
  private let engine: MessagingEngine
  private let workers: [Worker]
  private let configuration: WorkerConfiguration
  private let metrics: WorkerMetrics?
  private let events: AsyncStream<WorkerSchedule.Event>
  private let report: AsyncStream<WorkerSchedule.Event>.Continuation
  private let work = Mutex(Work())

  private struct Work {
    var nextNumber = 0
    var jobs: [Int: RunningJob.Handle] = [:]
    var waits: [Int: Task<Void, Never>] = [:]
    var drainTimer: Task<Void, Never>?
    /// The engine's generation before the last receive of a lane.
    var generations: [Int: NotificationGeneration] = [:]
    /// Why the engine takes no more work.
    var end: EngineError?
  }

  init(
    _ engine: MessagingEngine, _ workers: [Worker], _ configuration: WorkerConfiguration,
    _ metrics: WorkerMetrics?
  ) {
    self.engine = engine
    self.workers = workers
    self.configuration = configuration
    self.metrics = metrics
    (events, report) = AsyncStream.makeStream()
  }

  func handle(_ event: WorkerSchedule.Event) { report.yield(event) }

  /// Works until a drain or the engine's end; returns after the last job has ended.
  ///
  /// - Throws: the error that ended the engine.
  func run() async throws(EngineError) {
    var schedule = WorkerSchedule(
      slotCount: configuration.concurrency, limits: workers.map(\.concurrency))
    report.yield(.start)
    let watching = Task { await watch() }
    defer { watching.cancel() }
    for await event in events {
      if case .drain = event { beginDrainTimer() }
      for action in schedule.handle(event) { carryOut(action) }
    }
    if let end = work.withLock({ $0.end }) { throw end }
  }

  /// Ends the work when the engine takes no more, also while no slot is free to receive.
  private func watch() async {
    for await state in engine.states where state != .running {
      do throws(EngineError) {
        _ = try await engine.statistics(of: workers[0].channel)
      } catch {
        return end(error)
      }
    }
  }

  private func end(_ error: EngineError) {
    work.withLock { $0.end = $0.end ?? error }
    report.yield(.stopNow)
  }

  private func carryOut(_ action: WorkerSchedule.Action) {
    switch action {
    case .receive(let lane, let count): receive(lane, count)
    case .awaitMessages(let lane): wait(lane) { await self.awaitMessages(lane) }
    case .retryLater(let lane): wait(lane) { try? await Task.sleep(for: .seconds(1)) }
    case .run(let lane, let delivery): run(lane, delivery)
    case .giveBack(let lane, let delivery):
      Task {
        _ = try? await engine.release(delivery.token, countsAttempt: false)
        report.yield(.finished(lane: lane))
      }
    case .cancelWaits:
      for wait in work.withLock({ Array($0.waits.values) }) { wait.cancel() }
    case .cancelJobs:
      for job in work.withLock({ Array($0.jobs.values) }) { job.cancel() }
    case .end:
      work.withLock { $0.drainTimer }?.cancel()
      report.finish()
    }
  }

  private func receive(_ lane: Int, _ count: Int) {
    let worker = workers[lane]
    // From before the receive, so that the wait after it misses nothing.
    let generation = engine.messageGeneration
    work.withLock { $0.generations[lane] = generation }
    Task {
      do throws(EngineError) {
        report.yield(
          .received(
            lane: lane,
            try await engine.receive(
              from: worker.channel, for: worker.consumer, maximumCount: count,
              lease: configuration.lease)))
      } catch {
        fail(lane, error)
      }
    }
  }

  private func fail(_ lane: Int, _ error: EngineError) {
    if error.code.isTemporary {
      configuration.logger.warning("a receive failed: \(error.code)")
    } else {
      end(error)
    }
    report.yield(.receiveFailed(lane: lane))
  }

  private func awaitMessages(_ lane: Int) async {
    guard let generation = work.withLock({ $0.generations[lane] }) else { return }
    do throws(EngineError) {
      try await engine.waitForMessages(
        of: workers[lane].channel, for: workers[lane].consumer, after: generation,
        upTo: .seconds(3600))
    } catch {
      // The next receive finds out why, and reports it.
      if error.code != .cancelled { try? await Task.sleep(for: .milliseconds(100)) }
    }
  }

  private func wait(_ lane: Int, _ body: @escaping @Sendable () async -> Void) {
    let task = Task {
      await body()
      report.yield(.ready(lane: lane))
    }
    work.withLock { $0.waits[lane] = task }
  }

  private func run(_ lane: Int, _ delivery: Delivery) {
    let handle = RunningJob.Handle()
    let number = work.withLock { work in
      work.nextNumber += 1
      work.jobs[work.nextNumber] = handle
      return work.nextNumber
    }
    let job = RunningJob(
      delivery: delivery, worker: workers[lane], engine: engine, configuration: configuration,
      metrics: metrics)
    Task {
      await job(handle)
      work.withLock { _ = $0.jobs.removeValue(forKey: number) }
      report.yield(.finished(lane: lane))
    }
  }

  private func beginDrainTimer() {
    let timer = Task {
      guard (try? await Task.sleep(for: configuration.drainTimeout)) != nil else { return }
      report.yield(.stopNow)
    }
    work.withLock { $0.drainTimer = timer }
  }
}
