internal import SealedVFS

/// Converts the records of an old table to rows of the new one.
struct TablePlan {
  struct Column {
    let name: String
    /// Whether rows can set the column; false for a generated column.
    let isInsertable: Bool
    let isNotNull: Bool
    /// The declared type, in capital letters.
    let type: String

    /// Whether the type stores numbers as text:
    /// <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
    var holdsTextOnly: Bool {
      !type.contains("INT")
        && (type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT"))
    }

    /// Whether a STRICT table stores a value in the column without converting it:
    /// <https://sqlite.org/stricttables.html>.
    func takesUnchanged(_ value: StoredValue) -> Bool {
      switch (type, value) {
      case (_, .null): true
      case ("INTEGER", .integer), ("INT", .integer), ("REAL", .integer), ("REAL", .real),
        ("TEXT", .text), ("BLOB", .blob), ("ANY", _):
        true
      default: false
      }
    }
  }

  let name: String
  /// Whether the table has rowids; a WITHOUT ROWID table has its rows in an index b-tree.
  let hasRowID: Bool
  /// The columns, in the order of a record's fields.
  let columns: [Column]
  /// The index in ``columns`` of the column that is the rowid; its field is NULL.
  let rowIDColumn: Int?
  /// A name for the rowid that is no column's name; nil if columns have all three names.
  private let rowIDName: String?
  /// The number of columns of the key of a WITHOUT ROWID table; they come first.
  private(set) var keyColumnCount = 0

  /// Reads the columns of the new table, which must exist.
  init(_ name: String, in database: NewDatabase) throws(SealedDatabaseError) {
    self.name = name
    let listed = try database.rows(
      "SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'", name)
    hasRowID = listed.first?.first != "1"
    let keyIndex = try database.rows(
      "SELECT name FROM pragma_index_list(?1) WHERE origin = 'pk'", name
    ).first?[0]
    let rows = try database.rows(
      """
      SELECT name, hidden, "notnull" OR (pk > 0 AND ?2 = 'w'), type, pk
      FROM pragma_table_xinfo(?1) WHERE hidden <> 2 ORDER BY cid
      """, name, hasRowID ? "r" : "w")
    var columns = rows.map { row in
      Column(
        name: row[0] ?? "", isInsertable: row[1] == "0", isNotNull: row[2] == "1",
        type: row[3]?.uppercased() ?? "")
    }
    if hasRowID {
      let keys = rows.indices.filter { rows[$0][4] != "0" }
      let isAlias =
        keys.count == 1 && keyIndex == nil && rows[keys[0]][3]?.uppercased() == "INTEGER"
      rowIDColumn = isAlias ? keys[0] : nil
      let taken = Set(columns.map { $0.name.lowercased() })
      rowIDName =
        isAlias
        ? columns[keys[0]].name : ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
    } else {
      (rowIDColumn, rowIDName) = (nil, nil)
      // In the record the key's columns come first.
      let order = try database.rows(
        "SELECT name, key FROM pragma_index_xinfo(?1) WHERE cid >= 0 ORDER BY seqno",
        keyIndex ?? "")
      columns = order.compactMap { row in columns.first { $0.name == row[0] } }
      keyColumnCount = order.count { $0[1] == "1" }
    }
    self.columns = columns
  }

  /// The statement for records with this number of fields.
  ///
  /// Columns that were added to the table after such records get their defaults.
  func insertion(fieldCount: Int) -> String? {
    var names = inserted(fieldCount).map { columns[$0].name }
    if let rowIDName { names.insert(rowIDName, at: 0) }
    guard !names.isEmpty else { return nil }
    let list = names.map { $0.quotedName }.joined(separator: ", ")
    let places = names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    return "INSERT OR IGNORE INTO \(name.quotedName) (\(list)) VALUES (\(places))"
  }

  /// The values for ``insertion(fieldCount:)``.
  func arguments(rowID: Int64, _ values: [StoredValue]) -> [StoredValue] {
    let own = inserted(values.count).map { values[$0] }
    return rowIDName != nil ? [.integer(rowID)] + own : own
  }

  private func inserted(_ fieldCount: Int) -> [Int] {
    columns.indices.prefix(fieldCount).filter {
      columns[$0].isInsertable && $0 != rowIDColumn
    }
  }

  /// Whether a record could belong to this table.
  func fits(_ values: [StoredValue]) -> Bool {
    guard !values.isEmpty, values.count <= columns.count else { return false }
    return zip(columns, values).enumerated().allSatisfy { index, pair in
      let (column, value) = pair
      if index == rowIDColumn { return value == .null }
      switch value {
      case .null: return !column.isNotNull
      case .integer, .real: return !column.holdsTextOnly
      case .text, .blob: return true
      }
    }
  }

  /// Whether a record has a value for each column that the STRICT table would store as it is.
  func takesUnchanged(_ values: [StoredValue]) -> Bool {
    values.count == columns.count && fits(values)
      && zip(columns, values).allSatisfy { $0.takesUnchanged($1) }
  }
}

extension String {
  /// The name, quoted for SQL.
  var quotedName: String {
    "\"" + split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }
}
