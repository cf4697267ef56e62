internal import SealedVFS

/// Copies all rows that can be reached in a damaged database into a new one.
///
/// It copies the schema, then each table from its root, then the pages that no b-tree reaches.
/// Indexes, views and triggers come last. Until then, triggers do not fire and foreign keys are not
/// checked.
struct Salvager {
  let source: PageSource
  let database: NewDatabase
  /// Tables that the database must have.
  let knownTables: [KnownTable]
  var report = SalvageReport()

  var reader: TreeReader
  var settings: DatabaseSettings?
  var schema: [SchemaEntry] = []
  var copies: [TableCopy] = []
  var lostAndFound = LostAndFound()

  var encoding: TextEncoding { effective.encoding }
  var effective = DatabaseSettings()

  init(
    _ source: PageSource, into database: NewDatabase, knownTables: [KnownTable] = []
  ) {
    self.source = source
    self.database = database
    self.knownTables = knownTables
    reader = TreeReader(source)
  }

  /// Copies the whole database.
  mutating func run() throws(SealedDatabaseError) -> SalvageReport {
    readSettings()
    readSchema()
    try makeTables()
    for index in copies.indices { try copyTree(index) }
    let sequences = readSequences()
    if !report.isSchemaWhole || copies.contains(where: { !$0.losses.isEmpty }) {
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
      """)  // synchronizing this last commit makes all earlier ones durable
    report.lostAndFoundName = lostAndFound.name
    report.lostAndFoundRowCount = lostAndFound.rowCount
    report.areSettingsKept = settings != nil
    return report
  }

  /// Copies a table from its root.
  mutating func copyTree(_ index: Int) throws(SealedDatabaseError) {
    try database.run("BEGIN")
    let root = copies[index].entry.rootPage
    // The root page shows the kind of a table that could not be created.
    let isTable = copies[index].plan?.hasRowID ?? source.treePage(root)?.kind.isTable ?? true
    var reader = reader
    self.reader.claimed = PageSet(pageCount: 0)  // one owner: no copy of the set of pages
    defer { self.reader = reader }
    try reader.walk(root, isTable: isTable) { finding throws(SealedDatabaseError) in
      try take(finding, index)
    }
    try database.run("COMMIT")
  }

  private mutating func take(
    _ finding: TreeReader.Finding, _ index: Int
  ) throws(SealedDatabaseError) {
    switch finding {
    case .row(let page, let rowID, let values):
      try store(values, rowID: rowID, page: page, in: index)
    case .brokenRow(let rowID): copies[index].note(brokenRow: rowID)
    case .brokenCells(let count): copies[index].note(brokenCells: count)
    case .loss(let loss): copies[index].losses.append(loss)
    }
  }

  /// Inserts a row into its table, or into the lost and found if the table refuses it.
  mutating func store(
    _ values: [StoredValue], rowID: Int64, page: UInt32, in index: Int
  ) throws(SealedDatabaseError) {
    if try copies[index].insert(values, rowID: rowID, database, encoding) { return }
    try lostAndFound.add(
      root: copies[index].entry.rootPage, page: page, rowID: copies[index].hasRowID ? rowID : nil,
      values, to: database, encoding)
  }
}

/// Reads settings and schema of the damaged database, as far as possible.
extension Salvager {
  mutating func readSettings() {
    settings = source.page(1).map { DatabaseSettings(firstPage: $0) }
    if let settings {
      effective = settings
    } else if PointerMap(source, settings: nil) != nil {
      effective.autoVacuum = 2
    }
  }

  mutating func readSchema() {
    var entries: [(Int64, SchemaEntry)] = []
    let encoding = encoding
    var isWhole = true
    reader.walk(1, isTable: true) { finding in
      if case .row(_, let rowID, let values) = finding, let entry = SchemaEntry(values, encoding) {
        entries.append((rowID, entry))
      } else {
        isWhole = false
      }
    }
    if !isWhole { entries += orphanSchema() }
    report.isSchemaWhole = isWhole
    schema = entries.sorted { $0.0 < $1.0 }.map { $0.1 }
  }

  /// The entries of schema pages that no b-tree reaches; all cells of such a page are valid
  /// entries.
  private mutating func orphanSchema() -> [(Int64, SchemaEntry)] {
    var found: [(Int64, SchemaEntry)] = []
    for number in source.numbersAfterFirst where !reader.claimed.contains(number) {
      guard let page = source.treePage(number), page.kind == .tableLeaf, !page.cells.isEmpty,
        page.brokenCellCount == 0
      else { continue }
      let encodings = settings.map { [$0.encoding] } ?? TextEncoding.allCases
      guard
        let encoding = encodings.first(where: { encoding in
          page.cells.allSatisfy { SchemaEntry.looksLikeEntry($0.payload, encoding) }
        })
      else { continue }
      if settings == nil { effective.encoding = encoding }
      _ = reader.claimed.insert(number)
      reader.rows(of: page) { finding in
        if case .row(_, let rowID, let values) = finding,
          let entry = SchemaEntry(values, encoding)
        {
          found.append((rowID, entry))
        }
      }
    }
    return found
  }
}

/// Creates all of the new database except its rows.
extension Salvager {
  mutating func makeTables() throws(SealedDatabaseError) {
    try database.run(
      """
      PRAGMA encoding = '\(effective.encoding.name)';
      PRAGMA auto_vacuum = \(effective.autoVacuum);
      PRAGMA foreign_keys = OFF;
      PRAGMA ignore_check_constraints = ON;
      PRAGMA cell_size_check = OFF;
      """)
    for entry in schema where entry.isOrdinaryTable {
      var copy = TableCopy(entry)
      if let reason = try database.create(entry.sql ?? "") {
        report.notRecreated.append(SalvageReport.Refusal(name: entry.name, reason: reason))
      } else {
        copy.plan = try TablePlan(entry.name, in: database)
      }
      copies.append(copy)
    }
  }

  /// The counters of AUTOINCREMENT.
  mutating func readSequences() -> [[StoredValue]] {
    guard let entry = schema.first(where: { $0.isSequence }) else { return [] }
    var rows: [[StoredValue]] = []
    var isWhole = true
    reader.walk(entry.rootPage, isTable: true) { finding in
      if case .row(_, _, let values) = finding, values.count == 2 {
        rows.append(values)
      } else {
        isWhole = false
      }
    }
    if !isWhole {
      report.notRecreated.append(
        SalvageReport.Refusal(
          name: entry.name,
          reason:
            "counters of AUTOINCREMENT are lost, so that rowids of deleted rows can come again"))
    }
    return rows
  }

  /// Restores the counters of AUTOINCREMENT, which the copied rows have changed.
  func restore(_ sequences: [[StoredValue]]) throws(SealedDatabaseError) {
    guard !sequences.isEmpty,
      try !database.rows("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").isEmpty,
      let insertion = try database.insertion(
        "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", encoding)
    else { return }
    for row in sequences {
      guard case .text(let bytes) = row[0] else { continue }
      _ = try database.rows(
        "DELETE FROM sqlite_sequence WHERE name = ?1", encoding.decode(bytes))
      _ = try insertion.insert(row)
    }
  }

  /// Creates indexes, views and triggers, and enters virtual tables, whose shadow tables exist
  /// already.
  mutating func makeRest() throws(SealedDatabaseError) {
    for kind in [SchemaEntry.Kind.index, .view, .trigger] {
      for entry in schema where entry.kind == kind && !entry.isInternal {
        guard let sql = entry.sql else { continue }
        if let reason = try database.create(sql) {
          report.notRecreated.append(SalvageReport.Refusal(name: entry.name, reason: reason))
        }
      }
    }
    let virtual = schema.filter { $0.isVirtualTable && !$0.isInternal }
    guard !virtual.isEmpty else { return }
    try database.run("PRAGMA writable_schema = ON")
    let insertion = try database.insertion(
      "INSERT INTO sqlite_schema VALUES ('table', ?1, ?1, 0, ?2)", .utf8)
    for entry in virtual {
      _ = try insertion?.insert([
        .text(Array(entry.name.utf8)), .text(Array((entry.sql ?? "").utf8)),
      ])
    }
    try database.run("PRAGMA writable_schema = OFF")
  }
}
