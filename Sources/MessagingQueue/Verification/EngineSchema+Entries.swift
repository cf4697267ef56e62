internal import GRDB

extension EngineSchema {
  /// The statements of a database's tables and indexes by their names.
  static func entries(of db: Database) throws -> [String: String] {
    let rows = try Row.fetchAll(
      db, sql: "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 })
  }

  /// Those that a database of the newest version has, in the order in which they are made.
  static func expectedEntries() throws -> [(name: String, sql: String)] {
    let model = try DatabaseQueue()
    return try model.write { db in
      for rung in rungs { try db.execute(sql: rung) }
      return try Row.fetchAll(
        db, sql: "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"
      ).map { ($0[0], $0[1]) }
    }
  }
}
