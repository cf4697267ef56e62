/// Copies the schema and rows of the attached database `source` into the new one, in VACUUM's
/// order.
struct SchemaCopy {
  let connection: OwnConnection

  /// Runs within the caller's transaction.
  func run() throws(SealedDatabaseError) {
    try makeTablesAndIndexes()
    for table in try tables() { try copyRows(of: table) }
    try copySequences()
    // Views, triggers and virtual tables come last, as text: no trigger then fires for the rows
    // above, and the shadow tables already hold the data of the virtual tables.
    try connection.run(
      """
      INSERT INTO main.sqlite_schema (type, name, tbl_name, rootpage, sql) \
      SELECT type, name, tbl_name, 0, sql FROM source.sqlite_schema \
      WHERE type IN ('view', 'trigger') OR (type = 'table' AND coalesce(rootpage, 0) = 0)
      """)
    for number in ["user_version", "application_id"] {
      let value = try connection.first("PRAGMA source.\(number)") ?? "0"
      try connection.run("PRAGMA main.\(number) = \(value)")
    }
    let version = try connection.first("PRAGMA source.schema_version").flatMap { Int32($0) } ?? 0
    try connection.run("PRAGMA main.schema_version = \(version &+ 1)")
  }

  /// Creates tables and indexes before any row: SQLite then copies index entries in order,
  /// unsorted.
  private func makeTablesAndIndexes() throws(SealedDatabaseError) {
    let statements = try connection.run(
      """
      SELECT sql FROM source.sqlite_schema WHERE sql IS NOT NULL AND rootpage > 0 \
      AND name <> 'sqlite_sequence' AND type IN ('table', 'index') \
      ORDER BY type = 'index', rowid
      """)
    for case let sql? in statements.map(\.[0]) {
      // SQLite stores statements in this form; any other text was written there by hand.
      guard
        ["CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX "].contains(where: sql.hasPrefix)
      else {
        throw SealedDatabaseError(
          .sqlite, path: "", detail: "the schema contains an unknown statement")
      }
      try connection.run(sql)
    }
  }

  private func tables() throws(SealedDatabaseError) -> [String] {
    try connection.run(
      """
      SELECT name FROM source.sqlite_schema WHERE type = 'table' AND rootpage > 0 \
      AND name <> 'sqlite_sequence' ORDER BY rowid
      """
    ).compactMap { $0[0] }
  }

  /// Copies the rows of one table, with their row ids.
  ///
  /// `SELECT *` between two equal tables makes SQLite copy whole records (xferOptimization in
  /// insert.c), and with them row ids and the order of indexes. Two kinds of table need their
  /// columns named. Generated columns cannot be inserted. A table with neither a primary key nor an
  /// index would get new row ids.
  private func copyRows(of table: String) throws(SealedDatabaseError) {
    let (name, text) = (table.quotedAsName, table.quotedAsText)
    let columns = try connection.run(
      "SELECT name, pk, hidden FROM pragma_table_xinfo(\(text), 'source')")
    let hasKey = columns.contains { $0[1] != "0" }
    let index = try connection.first("SELECT 1 FROM pragma_index_list(\(text), 'source')")
    // OR ABORT, because a table's own ON CONFLICT IGNORE or REPLACE would drop rows without an error.
    if hasKey || index != nil, !columns.contains(where: { $0[2] != "0" }) {
      try connection.run("INSERT OR ABORT INTO main.\(name) SELECT * FROM source.\(name)")
      return
    }
    var list = columns.filter { $0[2] == "0" }.compactMap { $0[0]?.quotedAsName }
    let taken = Set(columns.compactMap { $0[0]?.lowercased() })
    let hasRowID =
      try connection.first(
        "SELECT 1 FROM pragma_table_list WHERE schema = 'source' AND name = \(text) AND NOT wr")
      != nil
    // If all three names are columns, no statement can see a row id or refer to it.
    if hasRowID, let rowID = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) }) {
      list.insert(rowID, at: 0)
    }
    let names = list.joined(separator: ", ")
    try connection.run(
      "INSERT OR ABORT INTO main.\(name) (\(names)) SELECT \(names) FROM source.\(name)")
  }

  /// Copies the counters of AUTOINCREMENT, which the rows above have changed.
  private func copySequences() throws(SealedDatabaseError) {
    let query = "sqlite_schema WHERE name = 'sqlite_sequence'"
    guard try connection.first("SELECT 1 FROM source.\(query)") != nil else { return }
    if try connection.first("SELECT 1 FROM main.\(query)") == nil {
      try connection.run("CREATE TABLE main.sqlite_sequence(name,seq)")
    }
    try connection.run("DELETE FROM main.sqlite_sequence")
    try connection.run(
      """
      INSERT INTO main.sqlite_sequence (rowid, name, seq) \
      SELECT rowid, name, seq FROM source.sqlite_sequence
      """)
  }
}

extension String {
  /// The text as an SQL identifier.
  var quotedAsName: String { quoted(by: "\"") }

  /// The text as an SQL string.
  var quotedAsText: String { quoted(by: "'") }

  /// Quotes by code point: Swift, unlike SQLite, takes a quote with an accent for another
  /// character.
  private func quoted(by quote: Unicode.Scalar) -> String {
    var text = String.UnicodeScalarView([quote])
    for scalar in unicodeScalars {
      text.append(scalar)
      if scalar == quote { text.append(scalar) }
    }
    text.append(quote)
    return String(text)
  }
}
