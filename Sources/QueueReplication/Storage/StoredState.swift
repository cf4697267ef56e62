internal import Foundation
internal import GRDB
internal import MessagingQueue
internal import Replication

/// What the tables have of an ``Applier``.
enum StoredState {
  /// Loads it.
  ///
  /// - Parameter now: when the records of its tail were read is not known any more: they wait from now on.
  static func load(_ db: Database, now: Duration) throws -> Applier {
    let row = try Row.fetchOne(
      db, sql: "SELECT version, state, base FROM replication_state")
    guard let row else { throw ReplicationError.damaged("replication_state has no row") }
    guard row[0] as Int64 == ReplicationSchema.version else {
      throw ReplicationError.newerVersion(row[0])
    }
    var authors: [AuthorID: ShardState.AuthorState] = [:]
    let authorRows = try Row.fetchCursor(
      db, sql: "SELECT author, number, part_count FROM replication_author")
    while let row = try authorRows.next() {
      authors[try AuthorID(decoding: [UInt8](row[0] as Data))] = ShardState.AuthorState(
        number: UInt64(row[1] as Int64), partCount: row[2])
    }
    var members: [MemberID: ShardState.Member] = [:]
    let memberRows = try Row.fetchCursor(
      db, sql: "SELECT member, since, safe, newest_key, oldest_key FROM replication_member")
    while let row = try memberRows.next() {
      members[try MemberID(decoding: [UInt8](row[0] as Data))] = ShardState.Member(
        since: UInt64(row[1] as Int64), safe: UInt64(row[2] as Int64), newestKey: row[3],
        oldestKey: row[4])
    }
    let state = ShardState(
      try ShardState.Values(decoding: [UInt8](row[1] as Data)), authors: authors, members: members)
    var tail: [Tail.Element] = []
    let tailRows = try Row.fetchCursor(
      db,
      sql: """
        SELECT position, stored_at, record, is_applied, before FROM replication_tail
        ORDER BY position
        """)
    while let row = try tailRows.next() {
      let record = try SealedRecord(reading: [UInt8](row[2] as Data))
      let place = RecordPlace(
        LogEntry(sequence: UInt64(row[0] as Int64), storedAt: row[1], record))
      tail.append(
        Tail.Element(
          place, readAt: now, isApplied: row[3],
          before: try ShardState.Change(decoding: [UInt8](row[4] as Data))))
    }
    return Applier(
      state, base: try (row[2] as Data?).map { try RecordPlace(decoding: [UInt8]($0)) }, tail: tail)
  }

  /// The values after the last record.
  static func values(_ db: Database) throws -> ShardState.Values {
    let select = try EngineStatement(db, "SELECT state FROM replication_state")
    guard let bytes = try select.first(decode: { $0.bytes(at: 0) }) else {
      throw ReplicationError.damaged("replication_state has no row")
    }
    return try ShardState.Values(decoding: bytes)
  }

  /// The last record that no broker can forget.
  static func safe(_ db: Database) throws -> Int64 {
    let select = try EngineStatement(db, "SELECT base FROM replication_state")
    let base = try select.first(decode: { $0.bytes(at: 0) }) ?? []
    return base.isEmpty ? 0 : Int64(clamping: try RecordPlace(decoding: base).sequence)
  }

  /// Stores what a batch has changed; ``MessageTables`` has stored the tail.
  static func store(_ applier: Applier, _ db: Database) throws {
    try db.run(
      "UPDATE replication_state SET state = ?, base = ?", applier.state.values.bytes,
      applier.base?.bytes)
    for id in applier.changed.authors {
      if let author = applier.state.authors[id] {
        try db.run(
          "INSERT OR REPLACE INTO replication_author VALUES (?, ?, ?)", id.bytes,
          Int64(author.number), author.partCount)
      } else {
        try db.run("DELETE FROM replication_author WHERE author = ?", id.bytes)
      }
    }
    for id in applier.changed.members {
      if let member = applier.state.members[id] {
        try db.run(
          "INSERT OR REPLACE INTO replication_member VALUES (?, ?, ?, ?, ?)", id.bytes,
          Int64(member.since), Int64(member.safe), Int64(member.newestKey), Int64(member.oldestKey))
      } else {
        try db.run("DELETE FROM replication_member WHERE member = ?", id.bytes)
      }
    }
  }
}
