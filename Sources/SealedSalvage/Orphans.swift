internal import SealedVFS

/// The pages with rows that no b-tree reaches.
struct Orphans {
  /// The numbers of the pages, in ascending order.
  private(set) var pages: [UInt32] = []
  /// The interior pages that no b-tree reaches, by their child pages.
  private var parents: [UInt32: UInt32] = [:]

  /// Reads every page that is not claimed.
  ///
  /// - Parameter isMapped: whether the database has pages of a pointer map.
  init(_ source: PageSource, claimed: PageSet, isMapped: Bool) {
    for number in source.numbersAfterFirst where !claimed.contains(number) {
      if isMapped && PointerMap.mapPage(for: number) == number { continue }
      guard let page = source.treePage(number) else { continue }
      if page.kind != .tableInterior { pages.append(number) }
      guard page.kind.isInterior else { continue }
      for cell in page.cells { parents[cell.child] = number }
      parents[page.rightChild] = number
    }
  }

  /// The topmost ancestor of a page, or the page itself if it has none.
  func top(of number: UInt32) -> UInt32 {
    var current = number
    var visited: Set<UInt32> = [number]
    while let parent = parents[current], visited.insert(parent).inserted { current = parent }
    return current
  }
}

extension Salvager {
  /// A lost subtree that a page without a parent could belong to.
  private struct LostSubtree {
    let copy: Int
    let loss: Int
    let page: UInt32
  }

  /// Finds the pages under lost ones, and copies their rows.
  ///
  /// The pointer map, if there is one, gives the owner of a page. Otherwise a page belongs to a
  /// table under three conditions: it lies among the rowids that the table lost, its records fit
  /// the table's columns, and no other table meets both. Rows without a known owner go to the lost
  /// and found, because a row in the wrong table would be an invented one.
  mutating func copyOrphans() throws(SealedDatabaseError) {
    let indexesLostPages = claimIndexes()
    let free = FreePages(source.page)
    for number in free.pages { _ = reader.claimed.insert(number) }
    let map = PointerMap(source, settings: settings)
    if let map, !report.isSchemaWhole { try copyKnownTables(map) }
    let orphans = Orphans(source, claimed: reader.claimed, isMapped: map != nil)
    try database.run("BEGIN")
    for number in orphans.pages where !reader.claimed.contains(number) {
      guard let page = source.treePage(number), map?.entry(for: number) != .free else { continue }
      let isMapped = map.map { $0.entry(for: number) != nil } ?? false
      _ = reader.claimed.insert(number)
      var rows: [(Int64, [StoredValue])] = []
      var broken: [Int64] = []
      reader.rows(of: page) { finding in
        switch finding {
        case .row(_, let rowID, let values): rows.append((rowID, values))
        case .brokenRow(let rowID): broken.append(rowID)
        default: break
        }
      }
      if rows.isEmpty && broken.isEmpty { continue }
      // An index can hold entries that read as rows of a WITHOUT ROWID table.
      let mayBeIndex = !page.kind.isTable && indexesLostPages && !isMapped
      let owner = mayBeIndex ? nil : owner(of: page, rows, broken, map: isMapped ? map : nil)
      let isKnownInUse = free.isComplete || isMapped
      if let owner, isKnownInUse {
        copies[owner.copy].answeredLosses.insert(owner.loss)
        for rowID in broken { copies[owner.copy].note(brokenRow: rowID) }
        for (rowID, values) in rows {
          try store(values, rowID: rowID, page: number, in: owner.copy)
        }
      } else if couldBeLost(page) {
        for (rowID, values) in rows {
          try lostAndFound.add(
            root: orphans.top(of: number), page: number, rowID: page.kind.isTable ? rowID : nil,
            values, to: database, encoding)
        }
      }
    }
    try database.run("COMMIT")
    noteUnreadableOrphans(map)
  }

  /// Notes the lost subtrees to which an unreadable page that no b-tree reaches could belong.
  private mutating func noteUnreadableOrphans(_ map: PointerMap?) {
    for number in source.numbersAfterFirst
    where !reader.claimed.contains(number) && source.page(number) == nil {
      if map != nil, PointerMap.mapPage(for: number) == number { continue }
      var ancestors: Set<UInt32>?
      if let map, let entry = map.entry(for: number) {
        guard case .child = entry else { continue }
        ancestors = map.ancestors(of: number)
      }
      for index in copies.indices {
        copies[index].noteUnreadablePage { ancestors?.contains($0.page) ?? true }
      }
    }
  }

  /// Whether a page without an owner can hold rows that are missing somewhere.
  private func couldBeLost(_ page: BTreePage) -> Bool {
    if !report.isSchemaWhole { return true }
    return copies.contains { !$0.losses.isEmpty && $0.hasRowID == page.kind.isTable }
  }

  /// Claims the pages of ordinary indexes, which hold only data that their tables have, too.
  private mutating func claimIndexes() -> Bool {
    var hasLosses = false
    for entry in schema where entry.rootPage > 0 && (entry.kind == .index || entry.isInternal) {
      reader.walk(entry.rootPage, isTable: entry.kind == .table) { finding in
        if case .loss = finding, entry.kind == .index { hasLosses = true }
      }
    }
    return hasLosses
  }

  /// The lost subtree that a page belongs to; nil if it is unknown.
  private func owner(
    of page: BTreePage, _ rows: [(Int64, [StoredValue])], _ broken: [Int64], map: PointerMap?
  ) -> LostSubtree? {
    var places: [LostSubtree] = []
    for (index, copy) in copies.enumerated() {
      guard let plan = copy.plan, plan.hasRowID == page.kind.isTable,
        rows.allSatisfy({ plan.fits($0.1) })
      else { continue }
      for (number, loss) in copy.losses.enumerated() {
        let isWithin = (rows.map { $0.0 } + broken).allSatisfy { rowID in
          loss.after.map { rowID > $0 } ?? true && loss.through.map { rowID <= $0 } ?? true
        }
        if isWithin || !page.kind.isTable {
          places.append(LostSubtree(copy: index, loss: number, page: loss.page))
        }
      }
    }
    if let map {
      let ancestors = map.ancestors(of: page.number)
      return places.first { ancestors.contains($0.page) }
    }
    let exact = places.filter { place in
      rows.contains { $0.1.count == copies[place.copy].plan?.columns.count }
    }
    for candidates in [places, exact] where Set(candidates.map(\.copy)).count == 1 {
      return candidates.first
    }
    return nil
  }
}
