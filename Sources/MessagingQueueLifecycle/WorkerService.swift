internal import Logging
public import MessagingQueue
public import ServiceLifecycle
internal import Synchronization

/// Runs workers as a service of a `ServiceGroup`, on the engine of a ``MessagingService``.
///
/// List it after that service, as a group shuts down from the last to the first.
///
///     let messages = MessagingService(home)
///     let workers = WorkerService(messages, [mails, invoices])
///     try await ServiceGroup(
///       services: [messages, workers], gracefulShutdownSignals: [.sigterm], logger: logger
///     ).run()
///
/// Free slots are divided among the channels in turn. Long jobs of one channel can hold all of them:
/// ``Worker/concurrency`` limits that. At a shutdown running handlers can finish (``WorkerConfiguration/drainTimeout``). When the vault is
/// locked, handlers are cancelled, and their jobs come again after the unlock, when their leases have
/// ended.
public final class WorkerService: Service {
  private let messages: MessagingService
  private let workers: [Worker]
  private let configuration: WorkerConfiguration
  private let metrics: WorkerMetrics?
  private let control = Mutex(Control())

  private struct Control {
    var isPaused = false
    var pausedChannels: Set<Channel> = []
    var session: WorkerSession?
  }

  /// Makes the service without starting it.
  ///
  /// - Parameter workers: at most one for each channel and consumer.
  public init(
    _ messages: MessagingService, _ workers: [Worker],
    configuration: WorkerConfiguration = WorkerConfiguration()
  ) {
    precondition(configuration.concurrency > 0, "a service needs a concurrency of at least 1")
    precondition(
      Dictionary(grouping: workers) { [$0.channel.name, $0.consumer.name] }.count == workers.count,
      "two workers have the same channel and consumer")
    self.messages = messages
    self.workers = workers
    self.configuration = configuration
    metrics = WorkerMetrics(configuration, workers)
  }

  /// Receives no more jobs until ``resume(_:)``; jobs that run finish.
  ///
  /// - Parameter channel: default: nil, all channels.
  public func pause(_ channel: Channel? = nil) {
    change { control in
      if let channel { control.pausedChannels.insert(channel) } else { control.isPaused = true }
    }
  }

  /// Receives jobs again.
  ///
  /// A channel stays paused while all channels are.
  ///
  /// - Parameter channel: default: nil, all channels, also those that were paused alone.
  public func resume(_ channel: Channel? = nil) {
    change { control in
      if let channel {
        control.pausedChannels.remove(channel)
      } else {
        control.isPaused = false
        control.pausedChannels = []
      }
    }
  }

  /// Works until the group shuts down gracefully or the task is cancelled.
  ///
  /// - Throws: the error of the ``MessagingService``; `vaultLocked` if it does not wait for an unlock;
  ///   `invalidArgument` for a limit of attempts or a lease that is out of range.
  public func run() async throws {
    if workers.isEmpty { return try await gracefulShutdown() }
    while !isShuttingDown {
      // Its error is final: there will be no more engine.
      guard let engine = try await engine() else { return }
      do {
        try await prepare(engine)
        try await serve(engine)
      } catch let error as EngineError where error.code.canPass || isShuttingDown {
        if isShuttingDown { return }
        configuration.logger.notice("the workers wait for the engine: \(error.code)")
        // An engine that ends is possibly still handed out.
        try? await Task.sleep(for: error.code == .vaultLocked ? .milliseconds(20) : .seconds(1))
      }
    }
  }

  /// - Returns: nil if the shutdown came first.
  private func engine() async throws -> MessagingEngine? {
    do {
      return try await cancelWhenGracefulShutdown { try await self.messages.engine() }
    } catch {
      if isShuttingDown { return nil }
      throw error
    }
  }

  private func prepare(_ engine: MessagingEngine) async throws(EngineError) {
    let lease = configuration.lease
    guard lease >= WorkerConfiguration.minimumLease,
      lease <= EngineConfiguration.maximumLeaseDuration
    else {
      throw EngineError(
        .invalidArgument, "a worker's lease of \(lease) is not from 100 ms to 366 days",
        hint: "it is extended at each third of it, with a commit")
    }
    for worker in workers {
      let limit =
        switch worker.attempts {
        case .configured: configuration.maximumAttempts
        case .limit(let limit): limit
        }
      try await engine.addConsumer(worker.consumer, of: worker.channel, maximumAttempts: limit)
    }
  }

  private func serve(_ engine: MessagingEngine) async throws {
    let session = WorkerSession(engine, workers, configuration, metrics)
    change { $0.session = session }
    defer { change { $0.session = nil } }
    // A task of its own: jobs are settled also if this one is cancelled.
    let running = Task { try await session.run() }
    try await withGracefulShutdownHandler {
      try await withTaskCancellationHandler {
        try await running.value
      } onCancel: {
        session.handle(.stopNow)
      }
    } onGracefulShutdown: {
      session.handle(.drain)
    }
  }

  private func change(_ change: (inout Control) -> Void) {
    control.withLock { control in
      change(&control)
      let paused = workers.indices.filter { lane in
        control.isPaused || control.pausedChannels.contains(workers[lane].channel)
      }
      // In the lock, so that the last change comes last.
      control.session?.handle(.paused(Set(paused)))
    }
  }

  private var isShuttingDown: Bool { Task.isShuttingDownGracefully || Task.isCancelled }
}

extension EngineError.Code {
  /// Whether the same call can succeed later, on the same engine.
  var isTemporary: Bool { [.busy, .diskFull, .inputOutput, .outcomeUnknown].contains(self) }

  /// Whether the same call can succeed later, on the same engine or on another one.
  var canPass: Bool { isTemporary || [.vaultLocked, .stopped].contains(self) }
}
