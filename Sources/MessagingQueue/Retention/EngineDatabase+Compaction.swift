package import GRDB

extension EngineDatabase {
  /// What the file holds and what of it is free.
  package struct FileUse: Sendable, Equatable {
    package let pageCount: Int
    package let freePageCount: Int
  }

  package static func fileUse(_ db: Database) throws -> FileUse {
    FileUse(
      pageCount: try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0,
      freePageCount: try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0)
  }

  /// Gives up to `pageCount` free pages back; the file shrinks with the next checkpoint.
  ///
  /// - Returns: How many are free still.
  package static func giveBack(pageCount: Int, _ db: Database) throws -> Int {
    // Each step of the statement frees one page: it has to be run to its end.
    _ = try Row.fetchAll(db, sql: "PRAGMA incremental_vacuum(\(pageCount))")
    return try fileUse(db).freePageCount
  }

  /// Copies the log into the database and empties it, as far as readers let it.
  ///
  /// Outside a transaction.
  package static func emptyLog(_ db: Database) throws {
    try db.checkpoint(.truncate)
  }
}
