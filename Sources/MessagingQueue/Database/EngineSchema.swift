internal import GRDB

/// The tables of the engine and the ladder that leads to them.
///
/// The rungs are counted in SQLite's `user_version` and climbed inside one immediate transaction,
/// so that two processes starting together cannot both make a table: GRDB's `DatabaseMigrator`
/// looks before it takes the write lock, and the second process fails.
///
/// `message` is the log, in the order of its timetokens. `delivery` is the queue's narrow view of
/// it: a row is rewritten for every lease, the payload beside it never. The partial indexes keep
/// what is ready apart from what is held, so that receiving does not step over leased rows.
///
/// A delivery is held while `held_until` is set: by a receiver when `lease` is set too, else by a
/// delay. The time counts nanoseconds of the boot clock in the boot `held_boot`; boots are
/// numbered in the order in which engines saw them, so that everything held before a reboot
/// compares as over.
enum EngineSchema {
  /// "DVMQ": tells this database from any other.
  static let applicationID: Int64 = 0x4456_4D51

  /// The statements of each version, from version 1 on.
  ///
  /// A rung that was released never changes.
  static let rungs: [String] = [
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
      name TEXT NOT NULL UNIQUE
    ) STRICT;

    CREATE TABLE message (
      timetoken INTEGER PRIMARY KEY,
      channel_id INTEGER NOT NULL REFERENCES channel (id),
      payload BLOB NOT NULL
    ) STRICT;
    CREATE INDEX message_channel ON message (channel_id);

    CREATE TABLE delivery (
      timetoken INTEGER PRIMARY KEY REFERENCES message (timetoken),
      channel_id INTEGER NOT NULL,
      attempt_count INTEGER NOT NULL DEFAULT 0,
      lease BLOB,
      held_boot INTEGER,
      held_until INTEGER,
      CHECK ((held_boot IS NULL) = (held_until IS NULL)),
      CHECK (lease IS NULL OR held_until IS NOT NULL)
    ) STRICT;
    CREATE INDEX delivery_ready ON delivery (channel_id) WHERE held_until IS NULL;
    CREATE INDEX delivery_held ON delivery (channel_id, held_boot, held_until)
      WHERE held_until IS NOT NULL;
    """
  ]

  /// Lets the database give space back; without this it never can.
  ///
  /// A pool in WAL mode has written its first page by the time it is handed to us, and from then
  /// on the setting takes effect by `VACUUM` only: nothing on a new database, a rewrite of the
  /// whole file on one that an application has filled before. See
  /// https://www.sqlite.org/pragma.html#pragma_auto_vacuum.
  static func ensureIncrementalVacuum(_ db: Database) throws {
    if try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") == 2 { return }
    try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
    try db.execute(sql: "VACUUM")
  }

  /// Climbs to the newest version, or changes nothing.
  ///
  /// - Throws: ``EngineError/Code/newerVersion`` if the database is beyond the ladder, ``EngineError/Code/damaged`` if it is below.
  static func climb(_ db: Database) throws {
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    guard version <= rungs.count else {
      throw EngineError(
        .newerVersion,
        "the message database has schema version \(version), this software knows \(rungs.count)",
        hint: "use the version of datavault that wrote it")
    }
    guard version >= 0 else {
      throw EngineError(
        .damaged, "the message database has schema version \(version), which none ever had",
        hint: EngineError.damageHint)
    }
    guard version < rungs.count else { return }
    for rung in rungs[version...] {
      try db.execute(sql: rung)
    }
    try db.execute(sql: "PRAGMA user_version = \(rungs.count)")
    try db.execute(sql: "PRAGMA application_id = \(applicationID)")
  }
}
