internal import SealedVFS

/// Settings and schema of the damaged database, as far as they can be read.
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
    var losses: [TreeReader.Loss] = []
    let encoding = encoding
    reader.walk(1, isTable: true) { finding in
      switch finding {
      case .row(_, let rowID, let values):
        if let entry = SchemaEntry(values, encoding) {
          entries.append((rowID, entry))
        } else {
          losses.append(TreeReader.Loss(page: 1, after: rowID - 1, through: rowID))
        }
      case .brokenRow(let page, let rowID):
        losses.append(TreeReader.Loss(page: page, after: rowID - 1, through: rowID))
      case .brokenCells(let page, _):
        losses.append(TreeReader.Loss(page: page, after: nil, through: nil))
      case .loss(let loss): losses.append(loss)
      }
    }
    if !losses.isEmpty { entries += orphanSchema() }
    schemaLosses = losses
    schema = entries.sorted { $0.0 < $1.0 }.map { $0.1 }
  }

  /// Schema pages that no tree leads to: whatever reads as rows of `sqlite_schema` throughout.
  private mutating func orphanSchema() -> [(Int64, SchemaEntry)] {
    var found: [(Int64, SchemaEntry)] = []
    guard source.pageCount > 1 else { return [] }
    for number in 2...source.pageCount where !reader.claimed.contains(number) {
      guard let bytes = source.page(number), let page = BTreePage(bytes, number: number),
        page.kind == .tableLeaf, !page.cells.isEmpty, page.brokenCellCount == 0
      else { continue }
      let encodings = settings.map { [$0.encoding] } ?? TextEncoding.allCases
      guard
        let encoding = encodings.first(where: { encoding in
          page.cells.allSatisfy { SchemaEntry.couldBegin($0.payload, encoding) }
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
