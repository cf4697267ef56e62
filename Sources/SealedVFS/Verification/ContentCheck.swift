internal import CSQLite

/// Runs SQLite's `PRAGMA integrity_check` on a ``SealedImage``.
///
/// It finds authentic pages that contradict each other:
/// <https://sqlite.org/pragma.html#pragma_integrity_check>. Nothing on disk changes. Its memory is
/// a cache of 16 MiB, and two bits for each page.
struct ContentCheck {
  private static let faultLimit = 100
  private static let cacheKibibyteCount = 16_384

  private(set) var faults: [String] = []
  /// Tables that need functions or collations of the application.
  private(set) var uncheckedTables: [String] = []

  /// Checks the contents.
  ///
  /// - Parameter onFirstReading: called once for each page that is read.
  init(_ image: SealedImage, onFirstReading: () -> Void) throws(SealedDatabaseError) {
    var result = Self()
    try withoutActuallyEscaping(onFirstReading) { (onFirstReading) throws(SealedDatabaseError) in
      let vfs = try ImageVFS(image, onFirstReading: onFirstReading)
      do throws(SealedDatabaseError) {
        let connection = try OwnConnection(
          "image", vfs: vfs.name, isReadOnly: true,
          explain: { Self.explain($0, $1, image.file.path) })
        defer { connection.close() }
        try result.run(on: connection)
      } catch  where error.code == .damaged {
        result.note([error.detail ?? "malformed"])
      }
    }
    self = result
  }

  private init() {}

  private mutating func run(on connection: OwnConnection) throws(SealedDatabaseError) {
    for (setting, value) in [
      ("temp_store", "MEMORY"),  // there is no other file
      ("cache_size", "-\(Self.cacheKibibyteCount)"),
      // The schema comes from somebody else: its expressions must not call functions with effects.
      ("trusted_schema", "OFF"), ("ignore_check_constraints", "ON"),
    ] {
      try connection.run("PRAGMA \(setting) = \(value)")
    }
    do throws(SealedDatabaseError) {
      try check(nil, on: connection)
    } catch  where error.code == .sqlite {
      // The application's functions or collations are missing: check table by table.
      let tables = try connection.run(
        """
        SELECT 'sqlite_schema' UNION ALL
        SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0
        """)
      for case let table? in tables.compactMap(\.first) {
        do throws(SealedDatabaseError) {
          try check(table, on: connection)
        } catch  where error.code == .sqlite {
          uncheckedTables.append(table)
        }
      }
    }
  }

  /// - Parameter table: the table's name; nil for the whole database.
  private mutating func check(
    _ table: String?, on connection: OwnConnection
  ) throws(SealedDatabaseError) {
    let argument = table?.quotedAsText ?? "\(Self.faultLimit)"
    let rows = try connection.run("PRAGMA integrity_check(\(argument))")
    for case let text? in rows.compactMap(\.first) where text != "ok" {
      // SQLite puts several faults of a b-tree into one row, under a heading.
      note(text.split(separator: "\n").filter { !$0.hasPrefix("*** in database") }.map(String.init))
    }
  }

  private mutating func note(_ found: [String]) {
    faults += found.prefix(Self.faultLimit - faults.count)
  }

  private static func explain(
    _ result: Int32, _ message: String, _ path: String
  ) -> SealedDatabaseError {
    let code: SealedDatabaseError.Code =
      switch result & 0xFF {
      case SQLITE_CORRUPT, SQLITE_NOTADB: .damaged
      case SQLITE_ERROR: .sqlite
      default: .inputOutput
      }
    return SealedDatabaseError(code, path: path, detail: message)
  }
}
