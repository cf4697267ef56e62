import GRDB
import MessagingQueue

/// Commits the new state of a job of our own and the acknowledgement together, or neither.
func finish(_ delivery: Delivery, as id: String, on engine: MessagingEngine) async throws {
  try await engine.write { db in
    try db.execute(sql: "UPDATE job SET state = 'done' WHERE id = ?", arguments: [id])
    try engine.acknowledge(delivery.token, in: db)
  }
}
