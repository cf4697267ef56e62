internal import SealedVFS

/// One table on its way into the new database.
struct TableCopy {
  let entry: SchemaEntry
  /// Nil when the table could not be made.
  var plan: TablePlan?
  /// Subtrees that could not be reached, and whether pages of them were found elsewhere.
  var losses: [TreeReader.Loss] = []
  var answeredLosses: Set<Int> = []

  private var report: Salvage.Table
  private var insertions: [Int: RowInsertion] = [:]
  private static let insertionLimit = 16

  init(_ entry: SchemaEntry) {
    self.entry = entry
    report = Salvage.Table(name: entry.name)
  }

  /// Inserts a record; false where the table does not take it.
  mutating func insert(
    _ values: [StoredValue], rowID: Int64, _ database: NewDatabase, _ encoding: TextEncoding
  ) throws(SealedFileError) -> Bool {
    guard let plan else { return false }
    let fieldCount = min(values.count, plan.columns.count)
    if insertions[fieldCount] == nil {
      if insertions.count >= Self.insertionLimit { insertions.removeAll() }
      insertions[fieldCount] = plan.insertion(fieldCount: fieldCount).flatMap {
        database.insertion($0, encoding)
      }
    }
    guard let insertion = insertions[fieldCount] else { return false }
    let arguments = plan.arguments(rowID: rowID, Array(values.prefix(fieldCount)))
    guard try insertion.insert(arguments) else { return false }
    report.rowsCopied += 1
    return true
  }

  mutating func note(brokenRow rowID: Int64) {
    report.rowsLostAtLeast += 1
    if plan?.hasRowID ?? true { note(first: rowID, last: rowID) }
  }

  mutating func note(brokenCells count: Int) {
    report.rowsLostAtLeast += count
  }

  private mutating func note(first: Int64?, last: Int64?) {
    if let previous = report.lostRanges.last, let end = previous.last, let first,
      end < .max, first == end + 1
    {
      report.lostRanges[report.lostRanges.count - 1] = Salvage.RowIDRange(
        first: previous.first, last: last)
    } else if report.lostRanges.count < Salvage.rangeLimit {
      report.lostRanges.append(Salvage.RowIDRange(first: first, last: last))
    }
  }

  /// The report, when all that will be found is found.
  mutating func finished() -> Salvage.Table {
    insertions = [:]
    report.pagesLost = losses.count
    let hasRowID = plan?.hasRowID ?? true
    for (index, loss) in losses.enumerated() {
      let isAnswered = answeredLosses.contains(index)
      // Interior pages of a table have no rows of their own, those of an index b-tree do.
      if isAnswered && hasRowID { continue }
      report.rowsLostAtLeast += 1
      if hasRowID {
        note(first: loss.after.map { $0 == .max ? $0 : $0 + 1 }, last: loss.through)
      }
    }
    return report
  }
}
