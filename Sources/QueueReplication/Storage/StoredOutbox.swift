internal import Foundation
internal import GRDB
internal import MessagingQueue
internal import Replication

/// The rows of the outbox in the database.
struct StoredRows: OutboxRows {
  let db: Database

  var authors: [AuthorID] {
    get throws {
      // An author after the other, not row by row: an outbox can have millions.
      let next = try db.cachedStatement(
        sql: """
          SELECT author, (SELECT min(arrival) FROM replication_outbox AS other
            WHERE other.author = replication_outbox.author AND other.number = (
              SELECT min(number) FROM replication_outbox AS first
              WHERE first.author = replication_outbox.author))
          FROM replication_outbox WHERE author > ? ORDER BY author LIMIT 1
          """)
      var found: [(arrival: Int64, author: AuthorID)] = []
      var last: [UInt8] = []
      while let row = try Row.fetchOne(next, arguments: [Data(last)]) {
        last = [UInt8](row[0] as Data)
        found.append((row[1], try AuthorID(decoding: last)))
      }
      return found.sorted { $0.arrival < $1.arrival }.map(\.author)
    }
  }

  var oldestKey: UInt32? {
    get throws {
      try db.number("SELECT key FROM replication_outbox ORDER BY key LIMIT 1").map(UInt32.init)
    }
  }

  func records(of author: AuthorID, after number: UInt64, most: Int) throws -> [SealedRecord] {
    let select = try db.cachedStatement(
      sql: """
        SELECT record FROM replication_outbox WHERE author = ? AND number > ?
        ORDER BY number LIMIT ?
        """)
    return try Data.fetchAll(
      select, arguments: [Data(author.bytes), Int64(clamping: number), Int64(clamping: most)]
    ).map { try SealedRecord(parsing: [UInt8]($0)) }
  }

  func firstNumber(of author: AuthorID) throws -> UInt64? {
    try db.number(
      "SELECT number FROM replication_outbox WHERE author = ? ORDER BY number LIMIT 1",
      author.bytes
    ).map(UInt64.init)
  }

  func insert(_ records: [SealedRecord]) throws {
    for record in records {
      try db.run(
        """
        INSERT INTO replication_outbox (author, number, key, record) VALUES (?, ?, ?, ?)
        ON CONFLICT DO NOTHING
        """, record.name.author.bytes, Int64(record.name.number), Int64(record.key), record.bytes)
    }
  }

  func remove(through name: RecordNumber) throws {
    try db.run(
      "DELETE FROM replication_outbox WHERE author = ? AND number <= ?", name.author.bytes,
      Int64(clamping: name.number))
  }
}

extension Outbox<StoredRows> {
  /// The outbox of a transaction: its rows and lanes are those of the database.
  init(_ db: Database) throws {
    let select = try EngineStatement(db, "SELECT lanes FROM replication_state")
    let lanes = try select.first { $0.bytes(at: 0) } ?? []
    self.init(StoredRows(db: db), try OutboxLanes(decoding: lanes))
  }

  /// Stores the lanes: call it in the same transaction, after numbers were taken.
  func store() throws {
    try rows.db.run("UPDATE replication_state SET lanes = ?", lanes.bytes)
  }
}
