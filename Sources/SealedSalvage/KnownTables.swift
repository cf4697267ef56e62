internal import SealedVFS

/// A table that a database must have, for a salvage that cannot read the database's own schema: its
/// name and its CREATE TABLE statement.
///
/// Only a STRICT table can be found by its rows.
package typealias KnownTable = (name: String, sql: String)

extension Salvager {
  /// The root page of a b-tree that no entry of the schema names; `page` is nil if it is lost.
  private typealias UnnamedRoot = (number: UInt32, page: BTreePage?)

  private struct Misfit: Error {}

  /// Copies the known tables whose entries in the schema are lost.
  ///
  /// A b-tree is a table's if all its rows fit that table and no other, and the rows of no other
  /// b-tree fit the table. A table was empty if no rows fit it. The rows of other b-trees go to the
  /// lost and found, because a row in the wrong table would be an invented one.
  mutating func copyKnownTables(_ map: PointerMap) throws(SealedDatabaseError) {
    let names = Set(schema.map { $0.name.lowercased() })
    var missing: [(table: KnownTable, plan: TablePlan)] = []
    for table in knownTables where !names.contains(table.name.lowercased()) {
      guard try database.create(table.sql) == nil else { continue }
      missing.append((table, try TablePlan(table.name, in: database)))
    }
    let roots = unnamedRoots(map)
    let areAllReadable = roots.allSatisfy { $0.page != nil }
    let fits = missing.map { table in roots.filter { self.fits($0, table.plan) }.map(\.number) }
    for (index, (table, plan)) in missing.enumerated() {
      let own = fits[index]
      var root: UInt32?
      if own.isEmpty, areAllReadable {
        let leaf = plan.hasRowID ? BTreePage.Kind.tableLeaf : .indexLeaf
        root =
          roots.first { number, page in
            page?.kind == leaf && page?.cells.isEmpty == true && !reader.claimed.contains(number)
          }?.number
      } else if own.count == 1, fits.count(where: { $0.contains(own[0]) }) == 1 {
        // An index can look like a WITHOUT ROWID table whose own root is lost.
        root = areAllReadable || plan.hasRowID ? own[0] : nil
      }
      guard let root else {
        try database.run("DROP TABLE \(table.name.quotedName)")
        continue
      }
      var copy = TableCopy(SchemaEntry(table, rootPage: root))
      copy.plan = plan
      copies.append(copy)
      try copyTree(copies.count - 1)
    }
  }

  private func unnamedRoots(_ map: PointerMap) -> [UnnamedRoot] {
    source.numbersAfterFirst.filter {
      !reader.claimed.contains($0) && map.entry(for: $0) == .root
    }.map { ($0, source.treePage($0)) }
  }

  /// Whether all rows of a b-tree that has rows could be rows of a table.
  private func fits(_ root: UnnamedRoot, _ plan: TablePlan) -> Bool {
    guard root.page?.kind.isTable == plan.hasRowID else { return false }
    var reader = reader
    var previous: [StoredValue] = []
    do throws(Misfit) {
      try reader.walk(root.number, isTable: plan.hasRowID) { finding throws(Misfit) in
        guard case .row(_, _, let values) = finding else { return }
        // The keys of a table differ, those of an index need not.
        let isNextKey =
          plan.hasRowID
          || values.prefix(plan.keyColumnCount) != previous.prefix(plan.keyColumnCount)
        guard plan.takesUnchanged(values), isNextKey else { throw Misfit() }
        previous = values
      }
    } catch {
      return false
    }
    return !previous.isEmpty
  }
}
