internal import Logging
internal import MessagingQueue
internal import MessagingQueueLifecycle
internal import ServiceLifecycle

/// Runs the command for each message.
///
/// A message whose command succeeds is acknowledged. Another is tried again later, and becomes a
/// dead letter after too many attempts.
func delivering(_ channel: Channel, by command: Command, logger: Logger) -> Worker {
  Worker(channel) { job in
    let delivery = job.delivery
    let failure = try await command.run(
      delivery.payload,
      variables: [
        "MESSAGE_ID": delivery.headers["id"] ?? "", "MESSAGE_ATTEMPT": "\(delivery.attempt)",
        "MESSAGE_TIMETOKEN": "\(delivery.timetoken)",
      ])
    guard let failure else { return }
    logger.warning("\(delivery.timetoken): \(failure)")
    throw JobFailure.retry(reason: failure)
  }
}

/// Reports to systemd whether the daemon delivers messages.
struct StatusReport: Service {
  let messages: MessagingService

  func run() async throws {
    while !Task.isShuttingDownGracefully {
      do {
        let engine = try await cancelWhenGracefulShutdown { try await messages.engine() }
        ServiceManager.notify("STATUS=delivering")
        for await state in engine.states.cancelOnGracefulShutdown() where state != .running {
          ServiceManager.notify("STATUS=locked: run datavault unlock to continue")
          break
        }
      } catch  where Task.isShuttingDownGracefully {
        return
      }
    }
  }
}
