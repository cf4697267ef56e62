internal import Foundation
package import GRDB
internal import MessagingQueue
package import Replication

/// The tables of a replicated home, beside the engine's: `docs/reference/replication-format.md`.
package enum ReplicationSchema {
  static let version: Int64 = 1

  private static let statements = """
    CREATE TABLE replication_state (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      version INTEGER NOT NULL,
      shard BLOB NOT NULL,
      member BLOB NOT NULL,
      state BLOB NOT NULL,
      base BLOB,
      lanes BLOB NOT NULL
    ) STRICT;

    CREATE TABLE replication_author (
      author BLOB PRIMARY KEY,
      number INTEGER NOT NULL,
      part_count INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replication_member (
      member BLOB PRIMARY KEY,
      since INTEGER NOT NULL,
      safe INTEGER NOT NULL,
      newest_key INTEGER NOT NULL,
      oldest_key INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replication_share (
      author BLOB NOT NULL,
      number INTEGER NOT NULL,
      share BLOB NOT NULL,
      position INTEGER NOT NULL,
      used INTEGER,
      PRIMARY KEY (author, number)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE replication_tail (
      position INTEGER PRIMARY KEY,
      stored_at INTEGER NOT NULL,
      record BLOB NOT NULL,
      is_applied INTEGER NOT NULL,
      before BLOB NOT NULL,
      changes BLOB NOT NULL
    ) STRICT;

    CREATE TABLE replication_outbox (
      arrival INTEGER PRIMARY KEY,
      author BLOB NOT NULL,
      number INTEGER NOT NULL,
      key INTEGER NOT NULL,
      record BLOB NOT NULL,
      UNIQUE (author, number)
    ) STRICT;

    CREATE TABLE replication_origin (
      timetoken INTEGER PRIMARY KEY,
      origin BLOB NOT NULL UNIQUE
    ) STRICT;
    CREATE TRIGGER replication_origin_removal AFTER DELETE ON message BEGIN
      DELETE FROM replication_origin WHERE timetoken = old.timetoken;
    END;

    CREATE TABLE replication_lease (
      lease BLOB PRIMARY KEY,
      kind INTEGER NOT NULL,
      timetoken INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX replication_lease_timetoken ON replication_lease (timetoken);

    CREATE TABLE replication_awaited (
      arrival INTEGER PRIMARY KEY,
      author BLOB NOT NULL,
      number INTEGER NOT NULL,
      result BLOB,
      UNIQUE (author, number)
    ) STRICT;
    CREATE INDEX replication_awaited_open ON replication_awaited (arrival) WHERE result IS NULL;

    CREATE TABLE replication_repair (
      number INTEGER PRIMARY KEY,
      after INTEGER NOT NULL,
      through INTEGER NOT NULL
    ) STRICT;
    """

  /// Makes the tables in a home that becomes the first member of a shard, and brings its messages.
  package static func make(
    shard: ShardID, member: MemberID, _ db: Database
  ) throws {
    try db.execute(sql: statements)
    var values = ShardState.Values()
    values.highWater = try EngineDatabase.highWater(db)
    try db.run(
      "INSERT INTO replication_state VALUES (1, ?, ?, ?, ?, NULL, ?)", version, shard.bytes,
      member.bytes, values.bytes, OutboxLanes().bytes)
    // Leases are no rows of a replicated home.
    try db.execute(
      sql: """
        UPDATE delivery SET lease = NULL, held_boot = NULL, held_until = NULL, is_blocked = 0
        """)
    // The messages of the first home have no record: they are named by their places.
    let timetokens = try Int64.fetchCursor(db, sql: "SELECT timetoken FROM message")
    while let timetoken = try timetokens.next() {
      let origin = MessageOrigin(RecordNumber(AuthorID(0), UInt64(timetoken)), 0)
      try db.run("INSERT INTO replication_origin VALUES (?, ?)", timetoken, origin.bytes)
    }
    try startOutbox(db)
  }

  /// Draws the first authors of a new member, so that any process can write into its outbox.
  static func startOutbox(_ db: Database) throws {
    var random = SystemRandomNumberGenerator()
    var outbox = try Outbox(db)
    try outbox.start(using: &random)
    try outbox.store()
  }

  /// Removes the tables of a home that has left its shard: its messages stay.
  package static func remove(_ db: Database) throws {
    try db.execute(sql: "DROP TRIGGER IF EXISTS replication_origin_removal")
    let tables = try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'replication\\_%' ESCAPE '\\'
        """)
    for table in tables { try db.execute(sql: "DROP TABLE \(table)") }
  }

  /// How many undone ranges are kept.
  private static let mostUndoneRanges: Int64 = 64

  /// Notes that timetokens were undone, which other messages can get.
  static func noteUndone(_ range: ShardState.TimetokenRange, _ db: Database) throws {
    try db.run(
      "INSERT INTO replication_repair (after, through) VALUES (?, ?)", range.from, range.to)
    try db.run(
      "DELETE FROM replication_repair WHERE number <= ?",
      db.lastInsertedRowID - mostUndoneRanges)
  }

  /// What this home has undone, the oldest first.
  static func undone(_ db: Database) throws -> [UndoneRange] {
    let rows = try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT number, after, through FROM replication_repair ORDER BY number"))
    return rows.map {
      UndoneRange(
        number: $0[0], places: PlaceRange(ShardState.TimetokenRange(from: $0[1], to: $0[2])))
    }
  }

  /// The member id of a home; nil for one that is no member.
  package static func member(_ db: Database) throws -> MemberID? {
    guard try isMade(db) else { return nil }
    let row = try Row.fetchOne(db, sql: "SELECT member FROM replication_state")
    return try row.map { try MemberID(decoding: [UInt8]($0[0] as Data)) }
  }

  /// Whether the database is a member's.
  package static func isMade(_ db: Database) throws -> Bool {
    try db.number(
      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'replication_state'") != nil
  }
}

extension PlaceRange {
  init(_ range: ShardState.TimetokenRange) {
    self.init(after: Timetoken(unchecked: range.from), through: Timetoken(unchecked: range.to))
  }
}
