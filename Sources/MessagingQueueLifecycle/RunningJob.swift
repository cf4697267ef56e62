internal import GRDB
internal import Logging
internal import MessagingQueue
internal import Synchronization

/// One job: its handler, the renewal of its lease, and its settlement.
struct RunningJob: Sendable {
  let delivery: Delivery
  let worker: Worker
  let engine: MessagingEngine
  let configuration: WorkerConfiguration
  let metrics: WorkerMetrics?

  /// Why a handler's task was cancelled.
  fileprivate enum Interruption { case shutdown, lostLease, engineEnd }

  /// The handler's task, and why it was cancelled.
  final class Handle: Sendable {
    fileprivate struct State {
      var task: Task<Void, any Error>?
      var interruption: Interruption?
    }

    fileprivate let state = Mutex(State())

    /// Ends the handler by a shutdown, or before it begins.
    func cancel() { interrupt(.shutdown) }

    fileprivate func interrupt(_ interruption: Interruption) {
      state.withLock { state in
        state.interruption = state.interruption ?? interruption
        return state.task
      }?.cancel()
    }

    fileprivate func enter(_ task: Task<Void, any Error>) {
      let isInterrupted = state.withLock { state in
        state.task = task
        return state.interruption != nil
      }
      if isInterrupted { task.cancel() }
    }

    fileprivate var interruption: Interruption? { state.withLock { $0.interruption } }
  }

  /// Runs the handler and settles the job; never cancelled itself.
  func callAsFunction(_ handle: Handle) async {
    let start = ContinuousClock.now
    let completion = Job.Completion()
    let job = Job(delivery, in: .engine(engine), completion)
    let handling = Task { [worker] in try await worker.handler(job) }
    handle.enter(handling)
    let renewing = Task { await renew(completion, handle) }
    let outcome = await handling.result
    renewing.cancel()
    await renewing.value
    let result = await settle(outcome, completion, handle)
    metrics?.record(result, of: delivery.channel, after: .now - start)
  }

  /// Extends the lease at each third of it, until it is lost.
  private func renew(_ completion: Job.Completion, _ handle: Handle) async {
    while (try? await Task.sleep(for: configuration.lease / 3, clock: .continuous)) != nil {
      guard completion.isOpen else { continue }
      do throws(EngineError) {
        try await engine.extend(delivery.token, by: configuration.lease)
      } catch {
        switch error.code {
        case .cancelled: return
        case .unknownLease where !completion.isOpen: continue
        case .unknownLease: return handle.interrupt(.lostLease)
        case .vaultLocked, .stopped: return handle.interrupt(.engineEnd)
        // Temporary: two more extensions come before the lease ends.
        default: log(.warning, "a lease was not extended: \(error.code)")
        }
      }
    }
  }

  private func settle(
    _ outcome: Result<Void, any Error>, _ completion: Job.Completion, _ handle: Handle
  ) async -> WorkerMetrics.Result {
    switch completion.result {
    case .acknowledged: return .acknowledged
    case .rejected(let reason): return await buried(.rejected, reason)
    // A handler cannot have another result committed.
    case .retried, nil: break
    }
    let token = delivery.token
    do throws(EngineError) {
      switch outcome {
      case .success:
        try await repeating(handle) { () throws(EngineError) in
          try await engine.acknowledge(token)
        }
        return .acknowledged
      case .failure where handle.interruption == .shutdown:
        try await repeating(handle) { () throws(EngineError) in
          _ = try await engine.release(token, countsAttempt: false)
        }
        log(.notice, "a job was released, because the shutdown waits no longer")
        return .released
      case .failure where handle.interruption == .lostLease:
        throw EngineError(.unknownLease, "the lease of a job was lost")
      case .failure(let error):
        return try await settle(failedBy: error, handle)
      }
    } catch {
      log(.warning, "a job was not settled: \(error.code)")
      return error.code == .unknownLease ? .lost : .unsettled
    }
  }

  private func settle(
    failedBy error: any Error, _ handle: Handle
  ) async throws(EngineError) -> WorkerMetrics.Result {
    let token = delivery.token
    switch JobResult(
      error, attempt: delivery.attempt, configuration.backoff, random: configuration.random)
    {
    case .acknowledged: return .acknowledged
    case .rejected(let reason):
      try await repeating(handle) { () throws(EngineError) in
        try await engine.reject(token, reason: reason)
      }
      return await buried(.rejected, reason)
    case .retried(let delay, let reason):
      let isDead = try await repeating(handle) { () throws(EngineError) in
        try await engine.release(token, after: delay, reason: reason)
      }
      return isDead ? await buried(.exhausted, reason) : .retried
    }
  }

  /// Reports a job that has become a dead letter.
  private func buried(_ result: WorkerMetrics.Result, _ reason: String) async
    -> WorkerMetrics.Result
  {
    log(.notice, result == .rejected ? "a job was rejected" : "a job failed its last attempt")
    await configuration.onDeath(delivery, reason)
    return result
  }

  /// Repeats a settlement after temporary errors for as long as the lease can last and a shutdown waits.
  private func repeating<Value>(
    _ handle: Handle, _ body: () async throws(EngineError) -> Value
  ) async throws(EngineError) -> Value {
    let end = ContinuousClock.now + configuration.lease
    while true {
      do throws(EngineError) {
        return try await body()
      } catch {
        guard error.code.isTemporary, handle.interruption != .shutdown, .now < end else {
          throw error
        }
        try? await Task.sleep(for: min(.seconds(1), configuration.lease / 10))
      }
    }
  }

  /// Logs the place and the attempt of the job, and nothing of its content.
  private func log(_ level: Logger.Level, _ message: Logger.Message) {
    configuration.logger.log(
      level: level, message,
      metadata: ["timetoken": "\(delivery.timetoken)", "attempt": "\(delivery.attempt)"])
  }
}
