import FaultVFS
import SealedVFS
import Testing

extension TemporaryDatabase {
  /// Creates a database with rows in `t`, in a journal mode, and closes it.
  func makeDatabase(rowCount: Int = 300, mode: String = "DELETE") throws {
    try withConnection { connection in
      try connection.run("PRAGMA journal_mode = \(mode)")
      try connection.fill(rowCount)
    }
  }

  /// A directory with the database of ``makeDatabase(rowCount:mode:)``.
  static func made(rowCount: Int = 300, mode: String = "DELETE") throws -> TemporaryDatabase {
    let place = TemporaryDatabase()
    try place.makeDatabase(rowCount: rowCount, mode: mode)
    return place
  }

  /// A directory with a connection to the database of ``makeDatabase(rowCount:mode:)``.
  static func reopened(
    rowCount: Int = 300, mode: String = "DELETE"
  ) throws -> (TemporaryDatabase, SQLConnection) {
    let place = try made(rowCount: rowCount, mode: mode)
    return (place, try place.connect())
  }

  /// A directory with a connection to a new database.
  static func connected() throws -> (TemporaryDatabase, SQLConnection) {
    let place = TemporaryDatabase()
    return (place, try place.connect())
  }

  /// The same in WAL mode, without automatic checkpoints.
  static func logging() throws -> (TemporaryDatabase, SQLConnection) {
    let (place, connection) = try connected()
    try connection.run("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    return (place, connection)
  }

  /// A database killed in WAL mode, with what `body` writes in its log.
  static func killed(_ body: (SQLConnection) throws -> Void) throws -> TemporaryDatabase {
    let (place, connection) = try logging()
    try connection.fill(60)
    try connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
    try body(connection)
    return try place.afterKill()
  }

  /// A copy of the present files, as a kill would leave them.
  func afterKill() throws -> TemporaryDatabase {
    let copy = TemporaryDatabase()
    try self.copy(to: copy)
    return copy
  }

  /// The header of the file, which must be sealed.
  func header() throws -> SealedHeader {
    guard case .sealed(let header) = try SealedVFS.inspect(database) else {
      throw SQLFailure(code: 0, message: "\(database) is not sealed")
    }
    return header
  }

  /// Verifies the database with a key.
  func verify(
    _ keyBytes: [UInt8] = TemporaryDatabase.keyBytes, checksContents: Bool = true,
    progress: (PageProgress) -> Void = { _ in }
  ) throws -> VerificationReport {
    try SealedVFS.verify(
      database, key: Self.key(keyBytes), checksContents: checksContents, progress: progress)
  }

  /// Changes the key to the other one.
  func changeKey(
    busyTimeout: Duration = .zero, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    try SealedVFS.reencrypt(
      database, from: Self.key(), to: Self.key(Self.otherKeyBytes), busyTimeout: busyTimeout,
      progress: progress)
  }

  /// Expects that SQLite refuses the work for a fault with this code.
  func expectFault<R>(
    _ code: SealedDatabaseError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> R
  ) {
    #expect(throws: SQLFailure.self, sourceLocation: sourceLocation) { _ = try body() }
    #expect(fault?.code == code, sourceLocation: sourceLocation)
  }

  /// Opens the database with the right key, and runs a query.
  func query(_ sql: String) throws -> String? { try withConnection { try $0.first(sql) } }

  /// Opens the database with a key for the time of `body`.
  func withConnection<R>(
    _ keyBytes: [UInt8] = TemporaryDatabase.keyBytes, _ body: (SQLConnection) throws -> R
  ) throws -> R {
    let registration = try SealedVFS.register(key: Self.key(keyBytes), at: database)
    return try withExtendedLifetime(registration) { try body(open()) }
  }
}

extension SQLConnection {
  /// Creates table `t` and inserts rows with text of 100 to 500 characters.
  func fill(_ rowCount: Int, from first: Int = 1) throws {
    try run("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text TEXT)")
    try run(
      """
      WITH RECURSIVE n(i) AS (SELECT \(first) UNION ALL SELECT i + 1 FROM n WHERE i < \(first + rowCount - 1))
      INSERT INTO t SELECT i, 'canary ' || i || ' ' || hex(zeroblob(50 + i % 200)) FROM n;
      """)
  }

  var rowCount: String? { get throws { try first("SELECT count(*) FROM t") } }
  var integrity: String? { get throws { try first("PRAGMA integrity_check") } }
}
