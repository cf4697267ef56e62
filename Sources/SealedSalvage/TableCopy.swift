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
    let hasRowID = listed.first?.first != "1"
    self.hasRowID = hasRowID
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
    if hasRowID, let rowIDName { names.insert(rowIDName, at: 0) }
    guard !names.isEmpty else { return nil }
    let list = names.map { $0.quotedName }.joined(separator: ", ")
    let places = names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    return "INSERT OR IGNORE INTO \(name.quotedName) (\(list)) VALUES (\(places))"
  }

  /// The values for ``insertion(fieldCount:)``.
  func arguments(rowID: Int64, _ values: [StoredValue]) -> [StoredValue] {
    let own = inserted(values.count).map { values[$0] }
    return hasRowID && rowIDName != nil ? [.integer(rowID)] + own : own
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
}

extension TablePlan {
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

/// The state of copying one table into the new database.
struct TableCopy {
  let entry: SchemaEntry
  /// The conversion of records; nil if the table could not be created.
  var plan: TablePlan?
  /// The subtrees that could not be reached; ``answeredLosses`` lists those with pages found
  /// elsewhere.
  var losses: [TreeReader.Subtree] = []
  var answeredLosses: Set<Int> = []
  /// The losses under which an unreadable page could lie.
  private var openLosses: Set<Int> = []

  private var report: SalvageReport.Table
  private var insertions: [Int: RowInsertion] = [:]
  private static let insertionLimit = 16

  init(_ entry: SchemaEntry) {
    self.entry = entry
    report = SalvageReport.Table(name: entry.name)
  }

  /// Inserts a record; returns false if the table refuses it.
  mutating func insert(
    _ values: [StoredValue], rowID: Int64, _ database: NewDatabase, _ encoding: TextEncoding
  ) throws(SealedDatabaseError) -> Bool {
    guard let plan else { return false }
    let fieldCount = min(values.count, plan.columns.count)
    if insertions[fieldCount] == nil {
      if insertions.count >= Self.insertionLimit { insertions.removeAll() }
      if let sql = plan.insertion(fieldCount: fieldCount) {
        insertions[fieldCount] = try database.insertion(sql, encoding)
      }
    }
    guard let insertion = insertions[fieldCount] else { return false }
    let arguments = plan.arguments(rowID: rowID, Array(values.prefix(fieldCount)))
    guard try insertion.insert(arguments) else { return false }
    report.rowsCopied += 1
    return true
  }

  /// Whether the rows have rowids, as far as is known.
  var hasRowID: Bool { plan?.hasRowID ?? true }

  mutating func note(brokenRow rowID: Int64) {
    report.rowsLostAtLeast += 1
    if hasRowID { note(first: rowID, last: rowID) }
  }

  mutating func note(brokenCells count: Int) {
    report.rowsLostAtLeast += count
  }

  /// Notes a page that could have held rows of some of the lost subtrees.
  mutating func noteUnreadablePage(isBelow: (TreeReader.Subtree) -> Bool) {
    openLosses.formUnion(losses.indices.filter { isBelow(losses[$0]) })
  }

  private mutating func note(first: Int64?, last: Int64?) {
    if let previous = report.lostRanges.last, let end = previous.last, let first,
      end < .max, first == end + 1
    {
      report.lostRanges[report.lostRanges.count - 1] = SalvageReport.RowIDRange(
        first: previous.first, last: last)
    } else if report.lostRanges.count < SalvageReport.rangeLimit {
      report.lostRanges.append(SalvageReport.RowIDRange(first: first, last: last))
    }
  }

  /// The final report, once all pages have been searched.
  mutating func finished() -> SalvageReport.Table {
    insertions = [:]
    report.pagesLost = losses.count
    for (index, loss) in losses.enumerated() {
      let isAnswered = answeredLosses.contains(index)
      // Interior pages of a table have no rows of their own. Those of an index b-tree have.
      let isWithoutRows = isAnswered && hasRowID
      if isWithoutRows && !openLosses.contains(index) { continue }
      if !isWithoutRows { report.rowsLostAtLeast += 1 }
      if hasRowID {
        note(first: loss.after.map { $0 == .max ? $0 : $0 + 1 }, last: loss.through)
      }
    }
    return report
  }
}
