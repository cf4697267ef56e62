internal import CSQLite
internal import SystemPackage

/// Copies a whole database by SQL: `docs/reference/exchange.md`.
///
/// Neither `VACUUM INTO` nor the backup API can *reduce* the reserved bytes of a page, and
/// SQLCipher reserves 80 where a sealed page has 40. This type therefore repeats VACUUM's steps
/// between two files: it copies tables, then rows, then the views, triggers and virtual tables.
package struct DatabaseCopy {
  private let source: CopySource
  private let target: CopyTarget

  package init(from source: CopySource, to target: CopyTarget) {
    self.source = source
    self.target = target
  }

  /// Makes the copy, which is whole and durable under its own name on return.
  ///
  /// - Parameter progress: receives the pages written and the pages of the source, equal in the
  ///   last call.
  package func run(progress: (PageProgress) -> Void) throws(SealedDatabaseError) {
    let facts = try SourceFacts(source, explain: explain)
    let connection = try OwnConnection(
      target.side.string, vfs: target.vfs, isReadOnly: false, explain: explain)
    defer { connection.close() }
    try prepare(connection, facts)
    try connection.run("BEGIN")
    let report = {
      let done = min(target.pageCount, facts.pageCount)
      progress(PageProgress(completedPageCount: done, pageCount: facts.pageCount))
    }
    try connection.reporting(report) { () throws(SealedDatabaseError) in
      try SchemaCopy(connection: connection).run()
      try connection.run("COMMIT")
    }
    connection.close()
    try source.requireClosed()
    try target.finish()
    progress(
      PageProgress(completedPageCount: facts.pageCount, pageCount: facts.pageCount))
  }

  /// Checks and sets all that must hold before the first page is written, and attaches the source.
  private func prepare(
    _ connection: OwnConnection, _ facts: SourceFacts
  ) throws(SealedDatabaseError) {
    if let format = target.format {
      guard unsafe SealedConnection.vfsName(of: connection.pointer) == SealedVFS.name else {
        throw SealedDatabaseError(.notOnSealedVFS, path: target.path.string)
      }
      let reserved = unsafe SealedConnection.reserveBytes(of: connection.pointer, for: format)
      guard reserved == format.reservedByteCount else {
        throw SealedDatabaseError(.reserveInUse, path: target.path.string)
      }
    }
    for (setting, value) in [
      ("page_size", "4096"), ("encoding", "'\(facts.encoding)'"),
      // A file that is either whole or absent needs no journal, which would store pages twice.
      ("journal_mode", "OFF"), ("synchronous", "FULL"),
      ("auto_vacuum", "\(facts.autoVacuum)"),  // the first pragma that writes
      ("temp_store", "MEMORY"),  // an unnamed file would be unencrypted
      ("foreign_keys", "OFF"), ("ignore_check_constraints", "ON"),
      // The schema comes from somebody else: its expressions must not call functions with effects.
      ("trusted_schema", "OFF"), ("writable_schema", "ON"),
    ] {
      try connection.run("PRAGMA \(setting) = \(value)")
    }
    guard try connection.first("PRAGMA main.journal_mode") == "off",
      try connection.first("PRAGMA temp_store") == "2"
    else {
      throw SealedDatabaseError(
        .sqlite, path: target.path.string, detail: "a PRAGMA has no effect")
    }
    try connection.run("ATTACH \(source.uri.quotedAsText) AS source")
  }

  /// Makes an error: from the fault that a file recorded, if there is one, or from SQLite's code.
  private func explain(_ result: Int32, _ message: String) -> SealedDatabaseError {
    for registration in [source.registration, target.registration] {
      if let fault = registration?.fault(reportedAs: result) { return fault }
    }
    let path = target.path.string
    switch result & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED: return SealedDatabaseError(.busy, path: source.path)
    case SQLITE_FULL: return SealedDatabaseError(.diskFull, path: path)
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      return SealedDatabaseError(.damaged, path: source.path, detail: message)
    case SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY:
      return SealedDatabaseError(.inputOutput, path: path, detail: message)
    default: return SealedDatabaseError(.sqlite, path: source.path, detail: message)
    }
  }
}

/// Facts about the source that a copy needs before it begins.
private struct SourceFacts {
  let encoding: String
  let autoVacuum: Int
  let pageCount: Int

  init(
    _ source: CopySource, explain: @escaping (Int32, String) -> SealedDatabaseError
  ) throws(SealedDatabaseError) {
    let connection = try OwnConnection(
      source.uri, vfs: SealedVFS.name, isReadOnly: true, explain: explain)
    defer { connection.close() }
    _ = try connection.first("SELECT count(*) FROM sqlite_schema")
    encoding = try connection.first("PRAGMA encoding") ?? "UTF-8"
    autoVacuum = try connection.first("PRAGMA auto_vacuum").flatMap { Int($0) } ?? 0
    pageCount = try connection.first("PRAGMA page_count").flatMap { Int($0) } ?? 0
  }
}
