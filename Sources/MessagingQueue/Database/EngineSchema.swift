internal import GRDB

/// The engine's tables and the migrations that make them.
///
/// SQLite's `user_version` counts the migrations, which run inside one immediate transaction. So
/// two processes that start together cannot both make a table. GRDB's `DatabaseMigrator` looks
/// before it takes the write lock, and the second process would fail.
///
/// `message` is the log, in the order of its timetokens. A consumer reads its channel through a
/// `position` for each priority. A row in `delivery` is a message before that position that is not
/// settled: leased, released, delayed, or waiting for its ordering key. So publishing writes one
/// row for any number of consumers, and receiving never reads past leased messages.
///
/// A delivery is held while `held_until` is set: by a receiver if `lease` is set too, otherwise by
/// a release with a delay. The time counts nanoseconds of the boot clock in the boot `held_boot`.
/// Engines number the boots in the order in which they see them, so everything held before a reboot
/// compares as ended. `due` and `expires` are times of the wall clock, in units of 100 ns since
/// 1970, as they must survive a reboot.
///
/// `published_count` of a channel only grows: by one for each message that is published or
/// imported. A live reader compares it with what it was given, and so notices messages that left
/// the log before it read them.
///
/// The limits of a ``Retention`` are `longest_age` (its maximum age, in units of 100 ns),
/// `most_messages` and `most_bytes`; a consumer's maximum of attempts is `most_attempts`. The limit
/// of the whole database is `most_bytes` of `engine`.
///
/// `identity` names the database in its exports. `import` records the progress of each imported
/// file: `docs/reference/message-export.md`.
///
/// There are no foreign keys, as every write of a row would pay for them. `queue verify` checks
/// what they would promise.
enum EngineSchema {
  /// "DVMQ": distinguishes this database from any other.
  static let applicationID: Int64 = 0x4456_4D51

  /// The statements of each version, from version 1 on.
  ///
  /// A released migration never changes. The first makes all tables. Each later one changes a single table, and writes
  /// all its rows, so that a salvage recognizes them by their number of columns.
  static let migrations: [String] = [
    """
    CREATE TABLE engine (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      commit_number INTEGER NOT NULL,
      timetoken_high_water INTEGER NOT NULL,
      boot_number INTEGER NOT NULL,
      boot_id TEXT NOT NULL,
      anchors BLOB NOT NULL
    ) STRICT;
    INSERT INTO engine VALUES (1, 0, 9999999999999999, 0, '', x'');

    CREATE TABLE channel (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      message_count INTEGER NOT NULL DEFAULT 0,
      byte_count INTEGER NOT NULL DEFAULT 0,
      keeps_acknowledged INTEGER NOT NULL DEFAULT 0,
      discards_unacknowledged INTEGER NOT NULL DEFAULT 0,
      longest_age INTEGER,
      most_messages INTEGER,
      most_bytes INTEGER,
      removed_through INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    CREATE TABLE message (
      timetoken INTEGER PRIMARY KEY,
      channel_id INTEGER NOT NULL,
      priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
      due INTEGER,
      expires INTEGER,
      ordering_key TEXT,
      headers BLOB,
      payload BLOB NOT NULL
    ) STRICT;
    CREATE INDEX message_channel ON message (channel_id);
    CREATE INDEX message_priority ON message (channel_id, priority) WHERE priority <> 4;
    CREATE INDEX message_due ON message (channel_id) WHERE due IS NOT NULL;

    CREATE TABLE consumer (
      id INTEGER PRIMARY KEY,
      channel_id INTEGER NOT NULL,
      name TEXT NOT NULL,
      most_attempts INTEGER,
      UNIQUE (channel_id, name)
    ) STRICT;

    CREATE TABLE position (
      consumer_id INTEGER NOT NULL,
      priority INTEGER NOT NULL,
      timetoken INTEGER NOT NULL,
      PRIMARY KEY (consumer_id, priority)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE delivery (
      consumer_id INTEGER NOT NULL,
      timetoken INTEGER NOT NULL,
      priority INTEGER NOT NULL,
      ordering_key TEXT,
      attempt_count INTEGER NOT NULL,
      lease BLOB,
      held_boot INTEGER,
      held_until INTEGER,
      due INTEGER,
      is_blocked INTEGER NOT NULL,
      failures TEXT,
      PRIMARY KEY (consumer_id, timetoken),
      CHECK ((held_boot IS NULL) = (held_until IS NULL)),
      CHECK (NOT is_blocked OR (held_until IS NULL AND due IS NULL))
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX delivery_ready ON delivery (consumer_id, priority, timetoken)
      WHERE held_until IS NULL AND due IS NULL AND is_blocked = 0;
    CREATE INDEX delivery_held ON delivery (consumer_id, held_boot, held_until)
      WHERE held_until IS NOT NULL;
    CREATE INDEX delivery_due ON delivery (consumer_id, due) WHERE due IS NOT NULL;
    CREATE INDEX delivery_key ON delivery (consumer_id, ordering_key, timetoken)
      WHERE ordering_key IS NOT NULL;

    CREATE TABLE dead_letter (
      consumer_id INTEGER NOT NULL,
      timetoken INTEGER NOT NULL,
      attempt_count INTEGER NOT NULL,
      reason TEXT NOT NULL,
      died INTEGER NOT NULL,
      failures TEXT,
      PRIMARY KEY (consumer_id, timetoken)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE deduplication (
      channel_id INTEGER NOT NULL,
      id TEXT NOT NULL,
      timetoken INTEGER NOT NULL,
      until INTEGER NOT NULL,
      PRIMARY KEY (channel_id, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX deduplication_until ON deduplication (until);

    CREATE TABLE identity (id INTEGER PRIMARY KEY CHECK (id = 1), source TEXT NOT NULL) STRICT;
    INSERT INTO identity VALUES (1, lower(hex(randomblob(16))));

    CREATE TABLE import (
      id TEXT PRIMARY KEY,
      source TEXT NOT NULL,
      channels TEXT,
      after INTEGER NOT NULL,
      last INTEGER NOT NULL,
      line_count INTEGER NOT NULL,
      digest BLOB NOT NULL,
      kept_count INTEGER NOT NULL,
      renumbered_count INTEGER NOT NULL,
      is_complete INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE channel ADD COLUMN published_count INTEGER NOT NULL DEFAULT 0;
    UPDATE channel SET published_count = message_count;
    """,
    """
    ALTER TABLE engine ADD COLUMN most_bytes INTEGER;
    UPDATE engine SET most_bytes = NULL;
    """,
  ]

  /// The version from which `engine` has the limit of the database.
  static let firstVersionWithLimit = 3

  /// The values of a number that counts commits, boots or published messages.
  ///
  /// No engine reaches the end. An anchor stores a commit's number in the vault, whose format has
  /// no greater number.
  static let counts: ClosedRange<Int64> = 0...(1 << 53 - 1)

  /// Lets the database give space back; without this it never can.
  ///
  /// A pool in WAL mode has already written its first page when it comes here. From then on only
  /// `VACUUM` applies the setting. On a new database that costs nothing; a database that an
  /// application has filled is rewritten whole. See
  /// https://www.sqlite.org/pragma.html#pragma_auto_vacuum.
  static func ensureIncrementalVacuum(_ db: Database) throws {
    if try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") == 2 { return }
    try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
    try db.execute(sql: "VACUUM")
  }

  /// Refuses a database with another application's tables, even under our version numbers.
  private static func requireApplication(_ db: Database, version: Int) throws {
    let found = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
    if found == applicationID || version == 0 && found == 0 { return }
    throw EngineError(
      .databaseMismatch,
      "the database has the application id \(found), not that of messages (\(applicationID))",
      hint: "another program made it or uses it; move it away")
  }

  /// Refuses a database of a newer version, whose tables can differ.
  ///
  /// - Returns: the version.
  @discardableResult
  static func requireNoNewerVersion(_ db: Database) throws -> Int {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    guard version <= migrations.count else {
      throw EngineError(
        .newerVersion,
        "the message database has schema version \(version), this software \(migrations.count)",
        hint: "use the version of datavault that wrote it")
    }
    return version
  }

  /// Migrates the tables of an older version, if no other connection has the database open.
  ///
  /// An engine of that version, in another process, would go on under its old rules. Call this under `messaging.lock`,
  /// or two engines of this version that start together refuse each other.
  ///
  /// - Throws: ``EngineError/Code/busy`` if another connection is open; nothing is changed then.
  static func migrateAlone(_ pool: DatabasePool) throws {
    pool.invalidateReadOnlyConnections()
    try translatingErrors(during: "migrating the message database") {
      try pool.writeWithoutTransaction { db in try migrateAlone(db) }
    }
  }

  private static func migrateAlone(_ db: Database) throws {
    guard (1..<migrations.count).contains(try requireNoNewerVersion(db)) else { return }
    // In this mode, a transaction begins with a lock of the whole file, which every open
    // connection shares in WAL mode: https://www.sqlite.org/pragma.html#pragma_locking_mode.
    try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
    let result = Result { () throws(TransactionFailure) in
      try db.inImmediateTransaction { try migrate(db) }
    }
    // The next access gives the lock back.
    let release = Result {
      try db.execute(sql: "PRAGMA locking_mode = NORMAL; SELECT 1 FROM sqlite_schema LIMIT 1")
    }
    if case .failure(.beginning(let error as DatabaseError)) = result,
      error.resultCode == .SQLITE_BUSY
    {
      throw openElsewhere
    }
    try result.get()
    try release.get()
  }

  private static let openElsewhere = EngineError(
    .busy,
    "the message database has the schema of an older version, and another process has it open",
    hint: "stop that process; the next start of an engine then brings the database up to date")

  /// Makes the tables in a database that has none, and refuses those of an older version.
  ///
  /// - Throws: ``EngineError/Code/busy`` for an older version: an engine of that version has made the tables after
  ///   ``migrateAlone(_:)``. Otherwise as ``migrate(_:)``.
  static func makeNewestTables(_ db: Database) throws {
    try makeTables(db)
    guard try requireNoNewerVersion(db) == migrations.count else { throw openElsewhere }
  }

  /// Makes the tables in a database that has none; those of an older version stay as they are.
  ///
  /// - Throws: as ``migrate(_:)``.
  static func makeTables(_ db: Database) throws {
    if try requireNoNewerVersion(db) < 1 { return try migrate(db) }
    try requireApplication(db, version: 1)
  }

  /// Migrates the database to the newest version, or changes nothing.
  ///
  /// - Throws: ``EngineError/Code/databaseMismatch`` for another application's database,
  ///   ``EngineError/Code/newerVersion`` for a version that this software does not know,
  ///   ``EngineError/Code/damaged`` for a negative one.
  static func migrate(_ db: Database) throws {
    let version = try requireNoNewerVersion(db)
    guard version >= 0 else {
      throw EngineError(
        .damaged, "the message database has schema version \(version), which no version has",
        hint: EngineError.damageHint)
    }
    try requireApplication(db, version: version)
    guard version < migrations.count else { return }
    for migration in migrations[version...] {
      try db.execute(sql: migration)
    }
    try db.execute(sql: "PRAGMA user_version = \(migrations.count)")
    try db.execute(sql: "PRAGMA application_id = \(applicationID)")
  }
}

extension EngineSchema {
  /// The statements of a database's tables and indexes by their names.
  static func entries(of db: Database) throws -> [String: String] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND type IN ('table', 'index')
        ORDER BY rowid
        """)
    return Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 })
  }

  /// The names of triggers on the engine's tables.
  ///
  /// The engine makes none, and each would take part in what it writes. Those on an application's own tables are the
  /// application's. A home that is one of several has the one that replication has made.
  static func foreignTriggers(of db: Database) throws -> [String] {
    let tables = try expectedTables().map(\.name)
    return try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_schema WHERE type = 'trigger'
          AND name <> 'replication_origin_removal' AND lower(tbl_name) IN
          (\(tables.map { "'\($0)'" }.joined(separator: ", "))) ORDER BY name
        """)
  }

  /// The tables of a database of the newest version.
  static func expectedTables() throws -> [(name: String, sql: String)] {
    try expectedEntries().filter { $0.sql.hasPrefix("CREATE TABLE") }
  }

  /// The statements of a database of a version, in the order in which they run.
  ///
  /// - Parameter version: default: the newest.
  static func expectedEntries(
    ofVersion version: Int = migrations.count
  ) throws -> [(name: String, sql: String)] {
    let model = try DatabaseQueue()
    return try model.write { db in
      for migration in migrations[..<version] { try db.execute(sql: migration) }
      return try Row.fetchAll(
        db, sql: "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
      ).map { ($0[0], $0[1]) }
    }
  }
}
