internal import Foundation
internal import GRDB
package import MessagingQueue
package import Replication
internal import SealedSQLite
package import SystemPackage
package import VaultCrypto

/// Makes a home without messages the member that a copy of another member's database was made for.
package enum MemberCopy {
  /// What stays this home's: `engine` counts its own commits, `identity` and `import` belong to its own exports.
  private static let ownTables: Set = ["engine", "identity", "import"]

  /// Throws as ``install(_:key:into:shard:member:)`` for a home or a copy that it refuses.
  static func check(
    _ path: FilePath, key: borrowing SecretBytes, for engine: MessagingEngine, shard: ShardID,
    member: MemberID
  ) async throws {
    let copy = try SealedDatabase.openReader(at: path, key: key)
    try await engine.read { db in
      try copy.read { source in
        try requireNoMessages(db)
        try requireCopy(source, for: member, of: shard, into: db)
      }
    }
  }

  /// Takes all rows of the copy, in one transaction.
  ///
  /// - Parameters:
  ///   - path: of the copy: `DatabaseCoordinator.copyDatabase`.
  ///   - key: of the copy.
  ///   - engine: of a home without messages.
  ///   - member: whom the copy was made for.
  /// - Throws: ``ReplicationError`` if the home has messages, or the copy is of another shard or member; the errors of
  ///   the engine. Nothing was changed then.
  package static func install(
    _ path: FilePath, key: borrowing SecretBytes, into engine: MessagingEngine,
    shard: ShardID, member: MemberID
  ) async throws {
    let copy = try SealedDatabase.openReader(at: path, key: key)
    try await engine.write { db in
      try copy.read { source in
        try requireNoMessages(db)
        try requireCopy(source, for: member, of: shard, into: db)
        let entries = try Row.fetchAll(
          source,
          sql: """
            SELECT type, name, sql FROM sqlite_schema
            WHERE type IN ('table', 'index', 'trigger') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
            ORDER BY type = 'trigger', type = 'index', rowid
            """)
        for entry in entries {
          guard let sql = entry["sql"] as String?, !ownTables.contains(entry["name"]) else {
            continue
          }
          try make(entry["name"], sql, db)
          if entry["type"] == "table" { try copyRows(of: entry["name"], from: source, to: db) }
        }
        try takeCounters(from: source, to: db)
        try db.execute(
          sql: """
            UPDATE replication_state SET member = ?, lanes = ?;
            DELETE FROM replication_outbox; DELETE FROM replication_awaited;
            """, arguments: [Data(member.bytes), Data(OutboxLanes().bytes)])
        try ReplicationSchema.startOutbox(db)
      }
    }
  }

  private static func requireNoMessages(_ db: Database) throws {
    let isUsed = try ["message", "channel", "consumer"].contains {
      try db.number("SELECT 1 FROM \($0) LIMIT 1") != nil
    }
    let isMember = try ReplicationSchema.isMade(db)
    guard !isUsed, !isMember else {
      throw ReplicationError(
        .state, "this home has channels or is a member already",
        hint:
          "join with an empty home; export the messages, and publish them with a client afterwards")
    }
  }

  private static func requireCopy(
    _ source: Database, for member: MemberID, of shard: ShardID, into db: Database
  ) throws {
    for pragma in ["application_id", "user_version"] {
      let (theirs, own) = (
        try Int64.fetchOne(source, sql: "PRAGMA \(pragma)"),
        try Int64.fetchOne(db, sql: "PRAGMA \(pragma)")
      )
      guard theirs == own else {
        throw ReplicationError(
          .newerVersion, "the copy was made by another version of datavaultd",
          hint: "use the same version on all nodes")
      }
    }
    guard try ReplicationSchema.isMade(source),
      let row = try Row.fetchOne(source, sql: "SELECT shard FROM replication_state"),
      [UInt8](row[0] as Data) == shard.bytes
    else {
      throw ReplicationError(
        .state, "the copy is not of a member of this shard",
        hint: "use the copy that was made with the invitation")
    }
    guard
      try source.number("SELECT 1 FROM replication_member WHERE member = ?", member.bytes) != nil
    else {
      throw ReplicationError(
        .state, "the copy was not made for this node, or too early",
        hint: "let a member invite this node again")
    }
  }

  private static func make(_ name: String, _ sql: String, _ db: Database) throws {
    let present = try String.fetchOne(
      db, sql: "SELECT sql FROM sqlite_schema WHERE name = ?", arguments: [name])
    if present == nil { return try db.execute(sql: sql) }
    guard present == sql else {
      throw ReplicationError(
        .state, "this home has another table or index '\(name)' than the copy",
        hint: "join with an empty home, and the same version of datavaultd")
    }
  }

  private static func copyRows(of table: String, from source: Database, to db: Database) throws {
    let name = table.quotedDatabaseIdentifier
    try db.execute(sql: "DELETE FROM \(name)")
    let rows = try Row.fetchCursor(source, sql: "SELECT * FROM \(name)")
    let marks = Array(repeating: "?", count: rows.columnNames.count).joined(separator: ", ")
    let insert = try db.makeStatement(sql: "INSERT INTO \(name) VALUES (\(marks))")
    while let row = try rows.next() {
      try insert.execute(arguments: StatementArguments(Array(row.databaseValues)))
    }
  }

  private static func takeCounters(from source: Database, to db: Database) throws {
    let highWater = try EngineDatabase.highWater(source)
    try db.run("UPDATE engine SET timetoken_high_water = ?", highWater)
    guard try source.tableExists("sqlite_sequence"), try db.tableExists("sqlite_sequence") else {
      return
    }
    try copyRows(of: "sqlite_sequence", from: source, to: db)
  }
}
