internal import CSQLite
package import GRDB

/// What a transaction has changed in some tables, as a changeset of SQLite: to undo it, or to do it elsewhere.
///
/// See https://www.sqlite.org/sessionintro.html. Each row is named by its primary key.
package struct RowChanges: Sendable, Hashable {
  /// The changeset; empty if nothing was changed.
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Why changes do not apply: the rows are not as they were when the changes were recorded.
  package struct Conflict: Error, Sendable {}

  /// The changes that undo these.
  ///
  /// - Throws: `damaged` if the bytes are not a changeset.
  package func inverted() throws -> RowChanges {
    _ = try ChangesetReader.tables(of: bytes)
    var count: Int32 = 0
    var inverse: UnsafeMutableRawPointer?
    let result = unsafe bytes.withUnsafeBytes { bytes in
      unsafe sqlite3changeset_invert(
        Int32(bytes.count), bytes.baseAddress, &count, &inverse)
    }
    defer { unsafe sqlite3_free(inverse) }
    try Self.check(result)
    return RowChanges(unsafe Self.bytes(inverse, count))
  }

  /// Changes the rows of these tables, all or none, in the caller's transaction.
  ///
  /// - Parameter tables: a change of another table is refused.
  /// - Throws: ``Conflict`` if a row is not as the changes expect it; `damaged` if the bytes are no changeset, or
  ///   change another table, or one that has other columns here.
  package func apply(to db: Database, in tables: Set<String>) throws {
    if bytes.isEmpty { return }
    // SQLite passes over changes of a table that is another one here.
    for (table, keys) in try ChangesetReader.tables(of: bytes) {
      guard tables.contains(table), try db.tableExists(table),
        try db.columns(in: table).map({ $0.primaryKeyIndex > 0 }) == keys
      else { throw Self.damaged }
    }
    let result = unsafe bytes.withUnsafeBytes { bytes in
      unsafe sqlite3changeset_apply_v2(
        db.sqliteConnection, Int32(bytes.count),
        UnsafeMutableRawPointer(mutating: bytes.baseAddress), nil,
        { _, _, _ in SQLITE_CHANGESET_ABORT }, nil, nil, nil, 0)
    }
    if result == SQLITE_ABORT { throw Conflict() }
    try Self.check(result)
  }

  fileprivate static func bytes(_ start: UnsafeMutableRawPointer?, _ count: Int32) -> [UInt8] {
    guard let start = unsafe start else { return [] }
    return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: Int(count)))
  }

  fileprivate static func check(_ result: Int32) throws {
    if result == SQLITE_CORRUPT { throw damaged }
    guard result == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: result)) }
  }

  static let damaged = EngineError(
    .damaged, "changes of rows cannot be read", hint: EngineError.damageHint)
}

/// Records what is changed in some tables, from its beginning to ``finish()``.
@safe package final class RowRecorder {
  private var session: OpaquePointer?

  /// - Parameter tables: each has a primary key.
  package init(_ db: Database, tables: some Collection<String>) throws {
    try RowChanges.check(unsafe sqlite3session_create(db.sqliteConnection, "main", &session))
    for table in tables { try RowChanges.check(unsafe sqlite3session_attach(session, table)) }
  }

  deinit { unsafe sqlite3session_delete(session) }

  /// What was changed.
  package func finish() throws -> RowChanges {
    var count: Int32 = 0
    var changes: UnsafeMutableRawPointer?
    let result = unsafe sqlite3session_changeset(session, &count, &changes)
    defer { unsafe sqlite3_free(changes) }
    try RowChanges.check(result)
    return RowChanges(unsafe RowChanges.bytes(changes, count))
  }
}
