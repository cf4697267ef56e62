internal import SealedVFS

/// Copies what can be reached of a database into a new one.
///
/// First the schema, then each table from its root, then pages that no tree leads to any more, then
/// indexes, views and triggers. Triggers and foreign keys have no say meanwhile.
struct Salvager {
  let source: any PageSource
  let database: NewDatabase
  var report = Salvage()

  var reader: TreeReader
  var settings: DatabaseSettings?
  var schema: [SchemaEntry] = []
  var copies: [TableCopy] = []
  private(set) var lostAndFound = LostAndFound()
  var schemaLosses: [TreeReader.Loss] = []

  var encoding: TextEncoding { effective.encoding }
  var effective = DatabaseSettings()

  init(_ source: any PageSource, into database: NewDatabase) {
    self.source = source
    self.database = database
    reader = TreeReader(source)
  }

  /// Does the whole work.
  mutating func run() throws(SealedFileError) -> Salvage {
    readSettings()
    readSchema()
    try makeTables()
    for index in copies.indices { try copyTree(index) }
    let sequences = readSequences()
    if !schemaLosses.isEmpty || copies.contains(where: { !$0.losses.isEmpty }) {
      try copyOrphans()
    }
    for index in copies.indices { report.tables.append(copies[index].finished()) }
    try restore(sequences)
    try makeRest()
    try database.run(
      """
      PRAGMA application_id = \(effective.applicationID);
      PRAGMA synchronous = FULL;
      PRAGMA user_version = \(effective.userVersion);
      """)  // the last commit, which is synchronized, takes all before it along
    report.lostAndFoundName = lostAndFound.name
    report.lostAndFoundRowCount = lostAndFound.rowCount
    report.isSchemaWhole = schemaLosses.isEmpty
    report.areSettingsKept = settings != nil
    return report
  }

  /// Copies a table from its root.
  private mutating func copyTree(_ index: Int) throws(SealedFileError) {
    try database.run("BEGIN")
    let copy = copies[index]
    // A table that could not be made may be of either kind.
    let isTable = copy.plan?.hasRowID ?? isTableRoot(copy.entry.rootPage)
    var reader = reader
    self.reader = TreeReader(EmptySource())  // one owner: the set of pages is not copied
    defer { self.reader = reader }
    try reader.walk(copy.entry.rootPage, isTable: isTable) { finding throws(SealedFileError) in
      try take(finding, index)
    }
    try database.run("COMMIT")
  }

  private func isTableRoot(_ number: UInt32) -> Bool {
    source.page(number).flatMap { BTreePage($0, number: number) }?.kind.isTable ?? true
  }

  private mutating func take(
    _ finding: TreeReader.Finding, _ index: Int
  ) throws(SealedFileError) {
    switch finding {
    case .row(let page, let rowID, let values):
      try store(values, rowID: rowID, page: page, in: index)
    case .brokenRow(_, let rowID): copies[index].note(brokenRow: rowID)
    case .brokenCells(_, let count): copies[index].note(brokenCells: count)
    case .loss(let loss): copies[index].losses.append(loss)
    }
  }

  /// Puts a row into its table, or, where that does not take it, to the lost and found.
  mutating func store(
    _ values: [StoredValue], rowID: Int64, page: UInt32, in index: Int
  ) throws(SealedFileError) {
    if try copies[index].insert(values, rowID: rowID, database, encoding) { return }
    let hasRowID = copies[index].plan?.hasRowID ?? true
    try storeLost(
      values, rowID: hasRowID ? rowID : nil, page: page, root: copies[index].entry.rootPage)
  }

  mutating func storeLost(
    _ values: [StoredValue], rowID: Int64?, page: UInt32, root: UInt32
  ) throws(SealedFileError) {
    try lostAndFound.add(
      root: root, page: page, rowID: rowID, values, to: database, encoding)
  }
}

/// Stands in while a reader is lent out.
private final class EmptySource: PageSource {
  let pageCount: UInt32 = 0
  func page(_ number: UInt32) -> [UInt8]? { nil }
}
