internal import GRDB

/// The tables of this module and the migrations that make them.
///
/// See `docs/reference/application-tables.md`.
enum ApplicationTables {
  /// The statements of each version, from version 1 on.
  ///
  /// A released migration never changes.
  static let migrations = [
    """
    CREATE TABLE application_state (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      version INTEGER NOT NULL,
      next_id INTEGER NOT NULL,
      key_check BLOB
    ) STRICT;
    INSERT INTO application_state VALUES (1, 0, 1001, NULL);

    CREATE TABLE application (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      publish_key TEXT NOT NULL UNIQUE,
      subscribe_key TEXT NOT NULL UNIQUE,
      secret_key BLOB NOT NULL,
      is_open INTEGER NOT NULL,
      created INTEGER NOT NULL,
      maximum_age INTEGER NOT NULL,
      maximum_bytes INTEGER NOT NULL,
      grant_count INTEGER NOT NULL DEFAULT 0,
      group_count INTEGER NOT NULL DEFAULT 0,
      member_count INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    CREATE TABLE application_grant (
      application_id INTEGER NOT NULL,
      holder BLOB NOT NULL,
      scope BLOB NOT NULL,
      rights INTEGER NOT NULL,
      start INTEGER NOT NULL,
      minutes INTEGER NOT NULL,
      PRIMARY KEY (application_id, holder, scope)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX application_grant_end ON application_grant (start + minutes * 600000000)
      WHERE minutes > 0;

    CREATE TABLE application_revocation (
      application_id INTEGER NOT NULL,
      digest BLOB NOT NULL,
      until INTEGER NOT NULL,
      PRIMARY KEY (application_id, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX application_revocation_until ON application_revocation (until);

    CREATE TABLE application_group (
      application_id INTEGER NOT NULL,
      name TEXT NOT NULL,
      channel TEXT NOT NULL,
      PRIMARY KEY (application_id, name, channel)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE application_change (
      generation INTEGER PRIMARY KEY,
      kind INTEGER NOT NULL,
      application_id INTEGER NOT NULL,
      item BLOB,
      scope BLOB
    ) STRICT;
    """,
    """
    CREATE TABLE application_user (
      application_id INTEGER NOT NULL,
      name TEXT NOT NULL,
      salt BLOB NOT NULL,
      iterations INTEGER NOT NULL,
      code BLOB NOT NULL,
      created INTEGER NOT NULL,
      PRIMARY KEY (application_id, name)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE application_user_role (
      application_id INTEGER NOT NULL,
      user TEXT NOT NULL,
      role TEXT NOT NULL,
      PRIMARY KEY (application_id, user, role)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE application_login_failure (
      subject BLOB PRIMARY KEY,
      failures INTEGER NOT NULL,
      last INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    """
    CREATE TABLE application_webhook (
      application_id INTEGER NOT NULL,
      url TEXT NOT NULL,
      events INTEGER NOT NULL,
      created INTEGER NOT NULL,
      PRIMARY KEY (application_id, url)
    ) STRICT, WITHOUT ROWID;
    """,
  ]

  /// The tables that each version makes.
  private static let names = [
    [
      "application_state", "application", "application_grant", "application_revocation",
      "application_group", "application_change",
    ],
    ["application_user", "application_user_role", "application_login_failure"],
    ["application_webhook"],
  ]

  /// Those whose rows are the same on all nodes of a replicated home.
  static let replicatedNames = Set(names.joined()).subtracting(["application_login_failure"])

  /// Throws unless the tables are there, in the newest version, as on a home that joins or is joined.
  static func requireNewestVersion(_ db: Database) throws {
    guard try db.tableExists("application_state"),
      try requireKnownVersion(db) == migrations.count
    else {
      throw ApplicationStoreError(
        .damaged, "the home is one of several, and lacks the applications' tables of this version",
        hint: "leave the cluster with all homes but one, open that one, and join again")
    }
  }

  /// Makes the tables, or brings them up to date, inside an immediate transaction.
  ///
  /// - Throws: `foreignTable`, `newerVersion`, `damaged`.
  static func make(_ db: Database) throws {
    let found = try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_schema WHERE type = 'table' AND lower(name) IN
          (\(names.joined().map { "'\($0)'" }.joined(separator: ", "))) ORDER BY name
        """)
    let version = found.contains("application_state") ? try requireKnownVersion(db) : 0
    let later = names[version...].joined()
    if let foreign = found.first(where: { later.contains($0.lowercased()) }) {
      throw ApplicationStoreError(
        .foreignTable, "the message database has a table '\(foreign)' that is not this server's",
        hint: "rename that table, and the code that uses it")
    }
    guard version < migrations.count else { return }
    for migration in migrations[version...] { try db.execute(sql: migration) }
    try db.execute(sql: "UPDATE application_state SET version = \(migrations.count)")
  }

  /// The version of the tables.
  ///
  /// - Throws: `newerVersion`, `damaged`.
  @discardableResult
  static func requireKnownVersion(_ db: Database) throws -> Int {
    guard let version = try db.number("SELECT version FROM application_state"), version > 0 else {
      throw ApplicationStoreError(
        .damaged, "the message database has lost the state row of the applications",
        hint: "restore the home from a backup")
    }
    guard version <= migrations.count else {
      throw ApplicationStoreError(
        .newerVersion,
        "the applications' tables have version \(version); this software reads \(migrations.count)",
        hint: "use the version of this software that wrote them")
    }
    return Int(version)
  }
}

extension Database {
  /// Runs a statement that GRDB keeps compiled.
  func run(_ sql: String, _ values: (any DatabaseValueConvertible)?...) throws {
    try cachedStatement(sql: sql).execute(arguments: StatementArguments(values))
  }

  /// The first column of the first row, which is a number; nil if there is no row.
  func number(_ sql: String, _ values: (any DatabaseValueConvertible)?...) throws -> Int64? {
    try Int64.fetchOne(cachedStatement(sql: sql), arguments: StatementArguments(values))
  }

  /// A copy of the first row; nil if there is none.
  func row(_ sql: String, _ values: (any DatabaseValueConvertible)?...) throws -> Row? {
    try Row.fetchOne(cachedStatement(sql: sql), arguments: StatementArguments(values))
  }

  /// The rows of a statement that GRDB keeps compiled, in a cursor.
  func rows(_ sql: String, _ values: (any DatabaseValueConvertible)?...) throws -> RowCursor {
    try Row.fetchCursor(cachedStatement(sql: sql), arguments: StatementArguments(values))
  }
}

extension Row {
  /// A column's bytes; empty for NULL.
  func bytes(_ index: Int) throws -> [UInt8] {
    try withUnsafeData(atIndex: index) { data in data.map { [UInt8]($0) } ?? [] }
  }
}
