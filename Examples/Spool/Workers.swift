internal import Logging
internal import MessagingQueue
internal import MessagingQueueLifecycle
internal import ServiceLifecycle

/// Receives messages and runs the command for each.
///
/// A successful message is acknowledged. A failed one is tried again later, and becomes a dead
/// letter after too many attempts.
struct Workers: Service {
  let messages: MessagingService
  let channel: Channel
  let options: Options
  let logger: Logger

  func run() async throws {
    while !Task.isShuttingDownGracefully && !Task.isCancelled {
      do {
        // Waits while the vault is locked, at the start and after every lock.
        guard let engine = try await unlessShuttingDown(messages.engine) else { return }
        try await engine.addConsumer(
          .default, of: channel, maximumAttempts: options.maximumAttempts)
        ServiceManager.notify("STATUS=delivering")
        try await withThrowingDiscardingTaskGroup { group in
          for _ in 0..<options.workerCount { group.addTask { try await work(engine) } }
        }
      } catch let error as EngineError where error.code == .vaultLocked {
        ServiceManager.notify("STATUS=locked: run datavault unlock to continue")
      }
    }
  }

  private func work(_ engine: MessagingEngine) async throws {
    while !Task.isShuttingDownGracefully {
      let deliveries = try await untilItPasses {
        try await unlessShuttingDown {
          try await engine.receive(
            from: channel, lease: options.lease, waitingUpTo: .seconds(3600))
        }
      }
      // Received messages are finished even during a shutdown.
      for delivery in deliveries ?? [] {
        let failure = await options.command.run(
          delivery.payload, id: delivery.headers["id"], attempt: delivery.attempt,
          timetoken: delivery.timetoken.description)
        try await untilItPasses { try await end(delivery, failure, engine) }
      }
    }
  }

  private func end(_ delivery: Delivery, _ fault: String?, _ engine: MessagingEngine) async throws {
    do throws(EngineError) {
      guard let fault else { return try await engine.acknowledge([delivery.token]) }
      logger.warning("\(delivery.timetoken): \(fault)")
      let delay = options.delay(afterAttempt: delivery.attempt)
      try await engine.release([delivery.token], after: delay, reason: fault)
    } catch {
      guard error.code == .unknownLease else { throw error }
      logger.warning("\(delivery.timetoken) took longer than its lease: it runs again")
    }
  }

  /// Repeats an operation after temporary errors, such as a full disk or a busy database.
  ///
  /// Such errors have changed nothing. A shutdown ends the repetition.
  private func untilItPasses<T>(_ body: () async throws -> T) async throws -> T {
    try await retrying(every: .seconds(1), logger, body) { error in
      [.busy, .diskFull, .inputOutput, .outcomeUnknown].contains((error as? EngineError)?.code)
    }
  }
}
