import GRDB
import MessagingQueue

struct Invoice: Codable {
  var number: Int
  var amount: Int
}

/// Commits an invoice in a table of our own and a message together, or neither.
func publish(_ invoice: Invoice, to channel: Channel, on engine: MessagingEngine) async throws {
  let message = Message(
    channel: channel, try .json(invoice), headers: ["kind": "invoice"], priority: try Priority(7),
    availability: .after(.seconds(60)), deduplicationID: "invoice \(invoice.number)")
  try await engine.write { db in
    try db.execute(sql: "INSERT INTO invoice (number) VALUES (?)", arguments: [invoice.number])
    try engine.publish(message, in: db)
  }
}

/// Reads that table, and an invoice that was received.
func numbers(on engine: MessagingEngine) async throws -> [Int] {
  try await engine.read { db in try Int.fetchAll(db, sql: "SELECT number FROM invoice") }
}

func invoice(in delivery: Delivery) throws -> Invoice {
  try delivery.decode(Invoice.self)
}
