internal import SealedVFS

/// What the new database is made of besides rows.
extension Salvager {
  mutating func makeTables() throws(SealedFileError) {
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
        report.notRecreated.append(Salvage.Refusal(name: entry.name, reason: reason))
      } else {
        copy.plan = try TablePlan(entry, in: database)
      }
      copies.append(copy)
    }
  }

  /// What AUTOINCREMENT has counted.
  mutating func readSequences() -> [[StoredValue]] {
    guard let entry = schema.first(where: { $0.isSequence }) else { return [] }
    var rows: [[StoredValue]] = []
    reader.walk(entry.rootPage, isTable: true) { finding in
      if case .row(_, _, let values) = finding, values.count == 2 { rows.append(values) }
    }
    return rows
  }

  /// The rows that were copied have counted too, and perhaps less.
  func restore(_ sequences: [[StoredValue]]) throws(SealedFileError) {
    guard !sequences.isEmpty,
      try !database.rows("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").isEmpty,
      let insertion = database.insertion(
        "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", encoding)
    else { return }
    for row in sequences {
      guard case .text(let bytes) = row[0] else { continue }
      _ = try database.rows(
        "DELETE FROM sqlite_sequence WHERE name = ?1", encoding.decode(bytes))
      _ = try insertion.insert(row)
    }
  }

  /// Indexes, views and triggers, and the entries of virtual tables, whose own tables are there.
  mutating func makeRest() throws(SealedFileError) {
    let order: [SchemaEntry.Kind] = [.index, .view, .trigger]
    for kind in order {
      for entry in schema where entry.kind == kind && !entry.isInternal {
        guard let sql = entry.sql else { continue }
        if let reason = try database.create(sql) {
          report.notRecreated.append(Salvage.Refusal(name: entry.name, reason: reason))
        }
      }
    }
    let virtual = schema.filter { $0.isVirtualTable && !$0.isInternal }
    guard !virtual.isEmpty else { return }
    try database.run("PRAGMA writable_schema = ON")
    let insertion = database.insertion(
      "INSERT INTO sqlite_schema VALUES ('table', ?1, ?1, 0, ?2)", .utf8)
    for entry in virtual {
      _ = try insertion?.insert([
        .text(Array(entry.name.utf8)), .text(Array((entry.sql ?? "").utf8)),
      ])
    }
    try database.run("PRAGMA writable_schema = OFF")
  }
}
