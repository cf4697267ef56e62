public import GRDB
public import SealedVFS
internal import Synchronization
public import SystemPackage
public import VaultCrypto

/// Opens sealed databases through unmodified GRDB.
public enum SealedDatabase {
  /// What to do when there is no database.
  public struct Creation: Sendable, Equatable {
    let isAllowed: Bool
    let autoVacuum: AutoVacuum

    /// Make one: the default.
    public static let ifAbsent = ifAbsent(autoVacuum: .none)
    /// Fail with `absent`.
    public static let never = Creation(isAllowed: false, autoVacuum: .none)

    /// Make one whose file can shrink again; a database that is there keeps what it has.
    public static func ifAbsent(autoVacuum: AutoVacuum) -> Creation {
      Creation(isAllowed: true, autoVacuum: autoVacuum)
    }

    /// What a new database does with pages it no longer needs:
    /// <https://sqlite.org/pragma.html#pragma_auto_vacuum>.
    public enum AutoVacuum: String, Sendable {
      /// Keeps them for later.
      case none = "NONE"
      /// Gives them back at each commit.
      case full = "FULL"
      /// Gives them back when it is told to.
      case incremental = "INCREMENTAL"
    }
  }

  /// Opens a pool on the sealed database at `path`, or makes the database.
  ///
  /// Every connection is checked to be on the sealed VFS before it is used, and overwrites
  /// what it deletes. What it sorts or keeps for a moment goes to sealed files, unless the
  /// configuration sets `temp_store`. The pool is in WAL mode. The configuration's
  /// own `prepareDatabase` runs on each connection before these checks and before a new file is
  /// written: it must not store anything, `PRAGMA auto_vacuum` included, for which there is
  /// `creation`.
  ///
  /// - Parameters:
  ///   - path: the database's file; its directory must exist.
  ///   - key: 32 bytes, copied; kept until the pool and its last connection are gone.
  ///   - configuration: GRDB's, for every connection.
  ///   - durability: set on the writer after the pool has opened, because GRDB sets NORMAL there,
  ///     and read back. Default: ``Durability/full``.
  ///   - creation: what to do when there is no database. Default: make one.
  ///   - newFileID: the identity of a new database, 8 bytes; nil draws one.
  /// - Returns: a pool whose commits are durable on return, by default; to be closed by ``close(_:)``.
  /// - Throws: before anything is changed where the file is not what it should be.
  public static func openPool(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration(),
    durability: Durability = .full, creation: Creation = .ifAbsent, newFileID: [UInt8]? = nil
  ) throws(SealedDatabaseError) -> DatabasePool {
    try openPool(
      at: path, key: key, configuration: configuration, durability: durability,
      creation: creation, newFileID: newFileID, over: "unix")
  }

  /// As above, over another VFS than "unix": for tests that record or fail what reaches the disk.
  package static func openPool(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration(),
    durability: Durability = .full, creation: Creation = .ifAbsent, newFileID: [UInt8]? = nil,
    over base: String
  ) throws(SealedDatabaseError) -> DatabasePool {
    let registration = try register(key: key, at: path, newFileID: newFileID, over: base)
    try checkFile(path, key: key, creation: creation, over: base)
    return try translating(path, registration) {
      let pool = try DatabasePool(
        path: path.string, configuration: prepared(configuration, registration, creation))
      if configuration.readonly {
        try pool.read { db in try ConnectionSettings.requirePages(db) }
      } else {
        try pool.writeWithoutTransaction { db in
          try ConnectionSettings.makeDurable(db, durability)
        }
      }
      OpenDatabases.add(pool, registration)
      return pool
    }
  }

  /// What the last recovery of a pool's or queue's log left out; nil as a rule.
  ///
  /// The database opens without those frames, as SQLite does after a power cut in the middle of a
  /// commit. Damage in the middle of a log looks the same, and then commits that were acknowledged
  /// are gone: who counts commits can tell.
  public static func discardedLogTail(of reader: any DatabaseReader) -> DiscardedLogTail? {
    OpenDatabases.registration(of: reader)?.discardedLogTail
  }

  /// Opens one connection that cannot write, for programs that only report.
  ///
  /// It is checked as every connection of a pool is.
  ///
  /// - Throws: `absent` when there is no database.
  public static func openReader(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration()
  ) throws(SealedDatabaseError) -> DatabaseQueue {
    try openReader(at: path, key: key, configuration: configuration, over: "unix")
  }

  /// As above, over another VFS than "unix".
  ///
  /// - Parameter removesEmptyLog: for a database without a log. The log and the index that SQLite makes are
  ///   removed again as the connection closes, for which it must be able to write.
  package static func openReader(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration(),
    over base: String, removesEmptyLog: Bool = false
  ) throws(SealedDatabaseError) -> DatabaseQueue {
    let registration = try register(key: key, at: path, newFileID: nil, over: base)
    try checkFile(path, key: key, creation: .never, over: base)
    var configuration = prepared(configuration, registration, .never)
    configuration.readonly = !removesEmptyLog
    return try translating(path, registration) {
      let reader = try DatabaseQueue(path: path.string, configuration: configuration)
      _ = try reader.read { db in try ConnectionSettings.requirePages(db) }
      OpenDatabases.add(reader, registration)
      return reader
    }
  }

  /// The configuration whose connections keep the registration alive and are checked.
  private static func prepared(
    _ configuration: Configuration, _ registration: KeyRegistration, _ creation: Creation
  ) -> Configuration {
    var prepared = configuration
    prepared.prepareDatabase { db in
      try ConnectionSettings.prepare(db, creation)
      if let connection = unsafe db.sqliteConnection { unsafe registration.adopt(connection) }
    }
    return prepared
  }

  private static func register(
    key: borrowing SecretBytes, at path: FilePath, newFileID: [UInt8]?, over base: String
  ) throws(SealedDatabaseError) -> KeyRegistration {
    do throws(SealedFileError) {
      return try SealedVFS.register(
        key: key, at: path, over: base, newFileID: newFileID, setsReserve: true)
    } catch {
      throw SealedDatabaseError(error)
    }
  }

  /// Looks at the file before SQLite does: its first bytes say what SQLite could not.
  private static func checkFile(
    _ path: FilePath, key: borrowing SecretBytes, creation: Creation, over base: String
  ) throws(SealedDatabaseError) {
    do throws(SealedFileError) {
      try SealedVFS.inspect(path, over: base).require(
        key: key, at: path, exists: !creation.isAllowed)
    } catch {
      throw SealedDatabaseError(error)
    }
  }

  private static func translating<R>(
    _ path: FilePath, _ registration: KeyRegistration, _ body: () throws -> R
  ) throws(SealedDatabaseError) -> R {
    do {
      return try body()
    } catch let error as SealedDatabaseError {
      throw error
    } catch let error as DatabaseError {
      let fault = registration.fault(reportedAs: error.reportedCode)
      throw SealedDatabaseError(error, path: path.string, fault: fault)
    } catch {
      throw SealedDatabaseError(.sqlite, "\(path): the database does not open", underlying: error)
    }
  }
}

extension SealedDatabase {
  /// Closes a pool: its readers first, its writer last.
  ///
  /// The last connection to a database brings the write-ahead log into it and deletes the log; one that
  /// cannot write does not. `DatabasePool.close()` closes the writer before the readers, and leaves a log and its
  /// index behind: a copy of the database file alone then lacks what the log holds. Where a connection of
  /// the pool has met a damaged page, the log stays as it is.
  ///
  /// Waits for reads and writes that are under way. None may begin meanwhile.
  ///
  /// - Throws: `busy` while a statement of the writer still runs: the pool is then open.
  public static func close(_ pool: DatabasePool) throws(SealedDatabaseError) {
    do {
      // It throws for a pool that is closed, which is nothing to be told of.
      try? pool.barrierWriteWithoutTransaction { db in
        pool.invalidateReadOnlyConnections()
        if let connection = unsafe db.sqliteConnection {
          unsafe OpenDatabases.registration(of: pool)?.keepLogAfterDamage(on: connection)
        }
      }
      try pool.close()
    } catch let error as DatabaseError {
      throw SealedDatabaseError(explaining: error, in: pool)
    } catch {
      throw SealedDatabaseError(.sqlite, "\(pool.path) does not close", underlying: error)
    }
  }
}

/// Which registration belongs to which open pool or queue, so that questions about one can be
/// answered as long as it lives.
enum OpenDatabases {
  private struct Entry: Sendable {
    weak let reader: (any DatabaseReader)?
    // Weak: it goes with the pool's configuration, and the key with it.
    weak let registration: KeyRegistration?
  }

  private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  /// Remembers a pool or queue; what is gone is forgotten at the same time.
  static func add(_ reader: any DatabaseReader, _ registration: KeyRegistration) {
    entries.withLock { entries in
      entries = entries.filter { $0.value.reader != nil }
      entries[ObjectIdentifier(reader)] = Entry(reader: reader, registration: registration)
    }
  }

  /// The registration of a pool or queue that `SealedDatabase` opened; nil for any other.
  static func registration(of reader: any DatabaseReader) -> KeyRegistration? {
    entries.withLock { entries in
      guard let entry = entries[ObjectIdentifier(reader)], entry.reader === reader else {
        return nil
      }
      return entry.registration
    }
  }
}
