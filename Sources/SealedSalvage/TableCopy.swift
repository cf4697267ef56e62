internal import SealedVFS

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
