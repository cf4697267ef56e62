internal import GRDB
public import SealedVFS

/// Sets and checks the settings that each connection to a sealed database needs.
///
/// A connection fails if a setting does not read back as it was set. Otherwise a deleted row could
/// stay in a free page, or a commit could be missing from the disk, without a sign.
enum ConnectionSettings {
  /// Runs on every connection of a pool before it is used.
  static func prepare(_ db: Database, _ creation: SealedDatabase.Creation) throws {
    // Fails closed: the connection must be on the sealed VFS, in the VFS's own SQLite library.
    guard let connection = unsafe db.sqliteConnection,
      unsafe SealedConnection.vfsName(of: connection) == SealedVFS.name,
      try String.fetchOne(db, sql: "SELECT sqlite_source_id()") == SealedConnection.libraryID
    else {
      throw SealedDatabaseError(.notOnSealedVFS, path: path(of: db))
    }
    let count = unsafe SealedConnection.reserveBytes(of: connection)
    let needed = FileFormat.sealed.reservedByteCount
    try require(db, count == needed, "\(needed) reserved bytes in each page (found \(count))")
    if creation.autoVacuum != .none, !db.configuration.readonly,
      try Int.fetchOne(db, sql: "PRAGMA page_count") == 0
    {
      // This writes page 1 of a new database, so it must follow the reserved bytes. In an existing
      // one it would commit at every opening, and wait for other writers.
      try db.execute(sql: "PRAGMA auto_vacuum = \(creation.autoVacuum.rawValue)")
    }
    try set(db, "secure_delete", to: "ON", readsBack: 1)
  }

  /// Runs on the writer after the pool has opened, because the pool sets `synchronous` itself.
  static func makeDurable(_ db: Database, _ durability: Durability) throws {
    try set(db, "synchronous", to: "\(durability.level)", readsBack: durability.level)
    let mode = try String.fetchOne(db, sql: "PRAGMA journal_mode")
    try require(db, mode == "wal", "journal_mode=WAL")
    try requirePages(db)
  }

  /// Runs once on a pool or a reader, because the page size is read from the file.
  static func requirePages(_ db: Database) throws {
    let pageByteCount = try Int.fetchOne(db, sql: "PRAGMA page_size")
    try require(db, pageByteCount == PageLayout.byteCount, "page_size=\(PageLayout.byteCount)")
  }

  private static func set(
    _ db: Database, _ name: String, to value: String, readsBack expected: Int
  ) throws {
    try db.execute(sql: "PRAGMA \(name) = \(value)")
    let found = try Int.fetchOne(db, sql: "PRAGMA \(name)")
    try require(db, found == expected, "\(name)=\(value)")
  }

  private static func require(_ db: Database, _ condition: Bool, _ setting: String) throws {
    if !condition {
      throw SealedDatabaseError(.settingRefused, path: path(of: db), detail: setting)
    }
  }

  private static func path(of db: Database) -> String { db.configuration.label ?? "the database" }
}

/// The place of a database's key: 32 raw bytes in a key file, or behind an open descriptor.
public typealias DatabaseKey = KeySource

/// The time at which a commit is on disk: <https://sqlite.org/pragma.html#pragma_synchronous>.
public struct Durability: Sendable, Equatable {
  let level: Int

  /// Each commit is synchronized before it returns: the default.
  public static let full = Durability(level: 2)
  /// Only checkpoints are synchronized: a power cut can lose the last commits, but never
  /// consistency.
  public static let normal = Durability(level: 1)
}
