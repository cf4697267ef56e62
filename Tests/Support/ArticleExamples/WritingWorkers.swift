import GRDB
import Logging
import MessagingQueue
import MessagingQueueLifecycle
import ServiceLifecycle
import VaultedDatabase

struct Mail: Codable {
  var to: String
  var text: String
}

/// Sends mails, and notes in a table of its own which ones it has sent.
struct Mailer {
  let channel: Channel
  let send: @Sendable (Mail) async throws -> Void

  var worker: Worker {
    Worker(channel, concurrency: 4) { job in
      guard let mail = try? job.delivery.decode(Mail.self) else {
        throw JobFailure.reject(reason: "not a mail")
      }
      try await send(mail)
      // The row and the acknowledgement are committed together, or neither is.
      try await job.complete { db in
        try db.execute(
          sql: "INSERT INTO sent (timetoken) VALUES (?)",
          arguments: [job.delivery.timetoken.rawValue])
      }
    }
  }

  func run(in home: DataVaultHome, logger: Logger) async throws {
    var configuration = EngineConfiguration()
    configuration.unlockTimeout = .seconds(86_400)
    let messages = MessagingService(home, configuration: configuration)
    let workers = WorkerService(messages, [worker])
    try await ServiceGroup(
      services: [messages, workers], gracefulShutdownSignals: [.sigterm], logger: logger
    ).run()
  }
}
