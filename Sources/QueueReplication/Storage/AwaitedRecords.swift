internal import Foundation
internal import GRDB
internal import MessagingQueue
internal import Replication

/// Records that another process of this home has written and waits for: ``OutboxWriter``.
///
/// The process that replicates the home stores their results, in the transaction that applies them.
enum AwaitedRecords {
  /// What a process that waits finds.
  enum Answer {
    /// The record is not applied yet.
    case open
    case result(RecordResult)
    /// The row is gone: another process replicates the home now.
    case gone
  }

  /// How many are kept, the newest: a process reads its result within milliseconds.
  private static let mostKept: Int64 = 1_024

  /// Notes that a process waits for a record, in the transaction that writes it.
  static func expect(_ name: RecordNumber, _ db: Database) throws {
    try db.run(
      "INSERT INTO replication_awaited (author, number) VALUES (?, ?)", name.author.bytes,
      Int64(clamping: name.number))
    try db.run(
      "DELETE FROM replication_awaited WHERE arrival <= ?", db.lastInsertedRowID - mostKept)
  }

  /// Stores the results of those records that a batch of the log has applied.
  static func answer(
    _ outcomes: [Applier.Outcome], _ results: [RecordNumber: RecordResult], _ db: Database
  ) throws {
    let open = try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT arrival, author, number FROM replication_awaited WHERE result IS NULL"))
    if open.isEmpty { return }
    let applied = Set(
      outcomes.compactMap { outcome in
        if case .applied(let name, _, _) = outcome { name } else { nil }
      })
    for row in open {
      let author = try AuthorID(decoding: [UInt8](row[1] as Data))
      let name = RecordNumber(author, UInt64(clamping: row[2] as Int64))
      guard applied.contains(name) else { continue }
      try db.run(
        "UPDATE replication_awaited SET result = ? WHERE arrival = ?",
        (results[name] ?? .places([])).bytes, row[0] as Int64)
    }
  }

  /// The result of a record, once there is one.
  static func answer(to name: RecordNumber, _ db: Database) throws -> Answer {
    let select = try EngineStatement(
      db, "SELECT coalesce(result, x'') FROM replication_awaited WHERE author = ? AND number = ?")
    let bytes = try select.first(name.author.bytes, Int64(clamping: name.number)) {
      $0.bytes(at: 0)
    }
    guard let bytes else { return .gone }
    return bytes.isEmpty ? .open : .result(try RecordResult(decoding: bytes))
  }
}
