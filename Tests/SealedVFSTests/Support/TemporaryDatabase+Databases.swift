import SealedVFS

extension TemporaryDatabase {
  /// Creates a database with rows in `t`, in a journal mode, and closes it.
  func makeDatabase(rowCount: Int = 300, mode: String = "DELETE") throws {
    let registration = try register()
    try withExtendedLifetime(registration) {
      let connection = try open()
      try connection.run("PRAGMA journal_mode = \(mode)")
      try connection.fill(rowCount)
    }
  }

  /// A copy of the present files, as a kill would leave them.
  func afterKill() throws -> TemporaryDatabase {
    let copy = try TemporaryDatabase()
    try self.copy(to: copy)
    return copy
  }

  /// Opens the database with the right key, and runs a query.
  func query(_ sql: String) throws -> String? {
    let registration = try register()
    return try withExtendedLifetime(registration) { try open().first(sql) }
  }
}

extension Connection {
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
