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

    CREATE TABLE replication_lease (
      lease BLOB PRIMARY KEY,
      kind INTEGER NOT NULL,
      timetoken INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX replication_lease_timetoken ON replication_lease (timetoken);

    CREATE TABLE replication_repair (
      after INTEGER PRIMARY KEY,
      through INTEGER NOT NULL
    ) STRICT;
    """

  /// Makes the tables in a home that becomes a member; the first home of a shard brings its messages.
  ///
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
        UPDATE delivery SET lease = NULL, held_boot = NULL, held_until = NULL, due = NULL, is_blocked = 0
        """)
    // The messages of the first home have no record: they are named by their places.
    let timetokens = try Int64.fetchCursor(db, sql: "SELECT timetoken FROM message")
    while let timetoken = try timetokens.next() {
      let origin = MessageOrigin(RecordNumber(AuthorID(0), UInt64(timetoken)), 0)
      try db.run("INSERT INTO replication_origin VALUES (?, ?)", timetoken, origin.bytes)
    }
  }

  /// Whether the database is a member's.
  package static func isMade(_ db: Database) throws -> Bool {
    try db.number(
      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'replication_state'") != nil
  }
}
