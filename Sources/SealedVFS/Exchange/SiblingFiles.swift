internal import CSQLite

/// The log and the journal beside a database that is to be read by itself.
enum SiblingFiles {
  /// Makes sure that neither holds anything that belongs into the database.
  ///
  /// - Throws: `notClosed`, naming the file.
  static func requireNone(
    of database: String, over vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(SealedFileError) {
    if let log = try unsafe HeldFile(database + "-wal", kind: SQLITE_OPEN_WAL, over: vfs),
      try log.byteCount() > 0
    {
      throw SealedFileError(.notClosed, path: database, detail: "\(log.path) holds changes")
    }
    let kind = SQLITE_OPEN_MAIN_JOURNAL
    if let journal = try unsafe HeldFile(database + "-journal", kind: kind, over: vfs),
      try journal.byteCount() > 0, beginsWithSomething(journal)
    {
      throw SealedFileError(.notClosed, path: database, detail: "\(journal.path) is hot")
    }
  }

  /// Whether a journal is one that must be rolled back: SQLite zeroes the start of one that is not.
  private static func beginsWithSomething(_ journal: HeldFile) -> Bool {
    let start = Scratch(byteCount: 8)
    guard unsafe journal.read(start.pointer, start.byteCount, at: 0) else { return true }
    return unsafe !start.bytes(0..<start.byteCount).isZero
  }
}
