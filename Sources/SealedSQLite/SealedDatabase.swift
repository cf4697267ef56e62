internal import Glibc
public import GRDB
public import SealedVFS
internal import Synchronization
public import SystemPackage
public import VaultCrypto

/// Opens sealed databases through unmodified GRDB.
public enum SealedDatabase {
  /// Whether to create a database that does not exist.
  public struct Creation: Sendable, Equatable {
    let isAllowed: Bool
    let autoVacuum: AutoVacuum

    /// Create a missing database: the default.
    public static let ifAbsent = ifAbsent(autoVacuum: .none)
    /// Fail with `notFound` if the database does not exist.
    public static let never = Creation(isAllowed: false, autoVacuum: .none)

    /// Create a missing database with an auto-vacuum mode; an existing database keeps its mode.
    public static func ifAbsent(autoVacuum: AutoVacuum) -> Creation {
      Creation(isAllowed: true, autoVacuum: autoVacuum)
    }

    /// The use of pages that a new database no longer needs:
    /// <https://sqlite.org/pragma.html#pragma_auto_vacuum>.
    public enum AutoVacuum: String, Sendable {
      /// Keep the pages for later.
      case none = "NONE"
      /// Return the pages to the file system at each commit.
      case full = "FULL"
      /// Return the pages to the file system on request.
      case incremental = "INCREMENTAL"
    }
  }

  /// Opens a pool on the sealed database at `path`, or creates the database.
  ///
  /// Every connection is checked to be on the sealed VFS before it is used, and overwrites deleted
  /// data. Temporary data goes to sealed files, unless the configuration sets `temp_store`. The
  /// pool is in WAL mode. The configuration's own `prepareDatabase` runs on each connection before
  /// these checks, and before a new file is written. It must not store anything: set `auto_vacuum`
  /// by `creation`.
  ///
  /// - Parameters:
  ///   - path: the database's file; its directory must exist.
  ///   - key: 32 bytes, which are copied, and kept until the pool and its last connection are
  ///     released.
  ///   - configuration: GRDB's configuration for every connection.
  ///   - durability: set on the writer after the pool has opened, because GRDB sets NORMAL there,
  ///     and read back. Default: ``Durability/full``.
  ///   - creation: whether to create a database that does not exist. Default:
  ///     ``Creation/ifAbsent``.
  ///   - newFileID: the identity of a new database, 8 bytes; nil draws one.
  /// - Returns: a pool whose commits are durable on return, by default. Close it with
  ///   ``close(_:)``.
  /// - Throws: the error for an unsuitable file, before anything is changed.
  public static func openPool(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration(),
    durability: Durability = .full, creation: Creation = .ifAbsent, newFileID: [UInt8]? = nil
  ) throws(SealedDatabaseError) -> DatabasePool {
    try openPool(
      at: path, key: key, configuration: configuration, durability: durability,
      creation: creation, newFileID: newFileID, over: "unix")
  }

  /// Opens a pool over another VFS than "unix", for tests that record disk writes or make them
  /// fail.
  package static func openPool(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration(),
    durability: Durability = .full, creation: Creation = .ifAbsent, newFileID: [UInt8]? = nil,
    over base: String
  ) throws(SealedDatabaseError) -> DatabasePool {
    try open(path, key: key, configuration, creation, newFileID: newFileID, over: base) {
      prepared in
      let pool = try DatabasePool(path: path.string, configuration: prepared)
      if prepared.readonly {
        try pool.read { db in try ConnectionSettings.requirePages(db) }
      } else {
        try pool.writeWithoutTransaction { db in
          try ConnectionSettings.makeDurable(db, durability)
        }
      }
      return pool
    }
  }

  /// The frames that the last recovery of a pool's or queue's log left out; usually nil.
  ///
  /// The database opens without those frames, as SQLite does after a power cut in the middle of a
  /// commit. Damage in the middle of a log looks the same, and then acknowledged commits are lost.
  /// Only an application that counts its commits can tell the two apart.
  public static func discardedLogTail(of reader: any DatabaseReader) -> DiscardedLogTail? {
    OpenDatabases.registration(of: reader)?.discardedLogTail
  }

  /// Opens one read-only connection, for programs that only report.
  ///
  /// It gets the same checks as every connection of a pool.
  ///
  /// - Throws: `notFound` if there is no database.
  public static func openReader(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration()
  ) throws(SealedDatabaseError) -> DatabaseQueue {
    try openReader(at: path, key: key, configuration: configuration, over: "unix")
  }

  /// Opens one read-only connection over another VFS than "unix".
  ///
  /// - Parameter removesEmptyLog: whether SQLite removes the log and index that it makes for a
  ///   database without a log, when the connection closes. The connection must then be able to
  ///   write.
  package static func openReader(
    at path: FilePath, key: borrowing SecretBytes, configuration: Configuration = Configuration(),
    over base: String, removesEmptyLog: Bool = false
  ) throws(SealedDatabaseError) -> DatabaseQueue {
    var configuration = configuration
    configuration.readonly = !removesEmptyLog
    return try open(path, key: key, configuration, .never, over: base) { prepared in
      let reader = try DatabaseQueue(path: path.string, configuration: prepared)
      try reader.read { db in try ConnectionSettings.requirePages(db) }
      return reader
    }
  }

  /// Opens one read-only connection that makes and changes no file.
  ///
  /// A database that is not in use is read without locks. A change at the same time fails the read or
  /// is not seen, because every page is authentic. A database in use is read through the log and its
  /// index, which must both exist.
  ///
  /// - Throws: `notClosed` for a log without an index, and for a journal, which SQLite would recover.
  package static func openUnchanged(
    at path: FilePath, key: borrowing SecretBytes, over base: String
  ) throws(SealedDatabaseError) -> DatabaseQueue {
    func isThere(_ suffix: String, atLeast byteCount: Int) -> Bool {
      var status = stat()
      return unsafe lstat(path.string + suffix, &status) == 0 && status.st_size >= byteCount
    }
    let hasLog = isThere("-wal", atLeast: 1)
    if isThere("-journal", atLeast: 1) || hasLog && !isThere("-shm", atLeast: 0) {
      throw SealedDatabaseError(
        .notClosed, path: path.string, detail: "its log or journal was left behind")
    }
    if hasLog { return try openReader(at: path, key: key, over: base) }
    var configuration = Configuration()
    configuration.readonly = true
    return try open(path, key: key, configuration, .never, over: base) { prepared in
      let uri = DatabaseURI(path.string, parameters: "immutable=1")
      return try DatabaseQueue(path: uri.text, configuration: prepared)
    }
  }

  /// Opens a pool or queue with a configuration whose connections check themselves, and keep the
  /// registration of the key alive.
  private static func open<Reader: DatabaseReader>(
    _ path: FilePath, key: borrowing SecretBytes, _ configuration: Configuration,
    _ creation: Creation, newFileID: [UInt8]? = nil, over base: String,
    _ make: (Configuration) throws -> Reader
  ) throws(SealedDatabaseError) -> Reader {
    let registration = try SealedVFS.register(
      key: key, at: path, over: base, newFileID: newFileID, setsReserve: true)
    try SealedVFS.require(key: key, at: path, over: base, exists: !creation.isAllowed)
    var prepared = configuration
    prepared.prepareDatabase { db in
      try ConnectionSettings.prepare(db, creation)
      if let connection = unsafe db.sqliteConnection { unsafe registration.adopt(connection) }
    }
    do {
      let reader = try make(prepared)
      OpenDatabases.add(reader, registration)
      return reader
    } catch let error as SealedDatabaseError {
      throw error
    } catch let error as DatabaseError {
      let fault = registration.fault(reportedAs: error.reportedCode)
      throw SealedDatabaseError(error, path: path.string, fault: fault)
    } catch {
      throw SealedDatabaseError(
        .sqlite, path: path.string, detail: "the database cannot be opened", underlying: error)
    }
  }
}

extension SealedDatabase {
  /// Closes a pool: its readers first, its writer last.
  ///
  /// The last connection to a database copies the write-ahead log into it and deletes the log, if
  /// the connection can write. `DatabasePool.close()` closes the writer before the readers, and
  /// leaves the log and its index behind. A copy of only the database file then lacks the commits
  /// in the log. If a connection of the pool has found a damaged page, the log is kept.
  ///
  /// The call waits for reads and writes that have begun. New ones must not begin until it returns.
  ///
  /// - Throws: `busy` while a statement of the writer still runs; the pool is then still open.
  public static func close(_ pool: DatabasePool) throws(SealedDatabaseError) {
    do {
      // The call throws for a pool that is already closed, which is not an error here.
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
      throw SealedDatabaseError(
        .sqlite, path: pool.path, detail: "the database cannot be closed", underlying: error)
    }
  }
}

/// The registrations of open pools and queues, for queries as long as a pool or queue lives.
enum OpenDatabases {
  private struct Entry: Sendable {
    weak let reader: (any DatabaseReader)?
    // Weak: the registration is released with the pool's configuration, and the key with it.
    weak let registration: KeyRegistration?
  }

  private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  /// Adds a pool or queue, and removes those that have been released.
  static func add(_ reader: any DatabaseReader, _ registration: KeyRegistration) {
    entries.withLock { entries in
      entries = entries.filter { $0.value.reader != nil }
      entries[ObjectIdentifier(reader)] = Entry(reader: reader, registration: registration)
    }
  }

  /// The registration of a pool or queue that `SealedDatabase` opened; nil for any other.
  static func registration(of reader: any DatabaseReader) -> KeyRegistration? {
    entries.withLock { entries in
      let entry = entries[ObjectIdentifier(reader)]
      return entry?.reader === reader ? entry?.registration : nil
    }
  }
}
