import GRDBSQLite
import SealedVFS
import SystemPackage

/// A connection through SQLite's C interface, with as little other code as possible.
final class SQLiteConnection {
  private static let payload = [UInt8]((0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 7) })

  let handle: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]

  init(_ path: FilePath, isSealed: Bool) throws {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    let result = sqlite3_open_v2(path.string, &opened, flags, isSealed ? SealedVFS.name : "unix")
    guard result == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw BenchmarkError("\(path) does not open: \(result)")
    }
    handle = opened
    try execute("PRAGMA temp_store = MEMORY")
  }

  deinit {
    for statement in statements.values { sqlite3_finalize(statement) }
    sqlite3_close_v2(handle)
  }

  func execute(_ sql: String) throws {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
  }

  /// Runs a pass and returns the next value of `:n`.
  func run(_ pass: Pass, countingFrom first: Int64) throws -> Int64 {
    let prepared = try pass.statements.map { try (statement($0), $0) }
    var random: UInt64 = 1
    for index in 0..<pass.count {
      let isFirst = pass.countPerTransaction.map { index % $0 == 0 } ?? false
      if isFirst { try execute("BEGIN") }
      random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      for (statement, sql) in prepared {
        bind(
          statement, n: first + Int64(index),
          random: Int64(random >> 33) % Int64(pass.randomLimit) + 1)
        var result = sqlite3_step(statement)
        while result == SQLITE_ROW {
          if sqlite3_column_type(statement, 0) == SQLITE_BLOB {
            _ = sqlite3_column_blob(statement, 0)
          } else {
            _ = sqlite3_column_int64(statement, 0)
          }
          result = sqlite3_step(statement)
        }
        sqlite3_reset(statement)
        guard result == SQLITE_DONE else { throw failure(sql) }
      }
      let isLast = pass.countPerTransaction.map { index % $0 == $0 - 1 } ?? false
      if isLast { try execute("COMMIT") }
    }
    if let size = pass.countPerTransaction, !pass.count.isMultiple(of: size) {
      try execute("COMMIT")
    }
    return first + Int64(pass.count)
  }

  private func bind(_ statement: OpaquePointer, n: Int64, random: Int64) {
    for index in 0..<sqlite3_bind_parameter_count(statement) {
      // The second letter distinguishes :n, :payload and :random.
      switch sqlite3_bind_parameter_name(statement, index + 1)[1] {
      case 0x6E: sqlite3_bind_int64(statement, index + 1, n)
      case 0x70:
        // nil: SQLite does not have to copy or free the bytes.
        Self.payload.withUnsafeBytes {
          _ = sqlite3_bind_blob(statement, index + 1, $0.baseAddress, Int32($0.count), nil)
        }
      default: sqlite3_bind_int64(statement, index + 1, random)
      }
    }
  }

  private func statement(_ sql: String) throws -> OpaquePointer {
    if let found = statements[sql] { return found }
    var prepared: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &prepared, nil) == SQLITE_OK, let prepared else {
      throw failure(sql)
    }
    statements[sql] = prepared
    return prepared
  }

  private func failure(_ sql: String) -> BenchmarkError {
    BenchmarkError("\(sql): \(String(cString: sqlite3_errmsg(handle)))")
  }
}
