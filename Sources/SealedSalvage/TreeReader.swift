internal import SealedVFS

/// Walks b-trees with lost pages, and continues where SQLite stops.
///
/// The first b-tree that reaches a page claims it. There is therefore no loop, and no row is read
/// twice.
struct TreeReader {
  let source: PageSource
  /// Pages that a tree, an overflow chain or a list has claimed.
  var claimed: PageSet

  init(_ source: PageSource) {
    self.source = source
    claimed = PageSet(pageCount: source.pageCount)
  }

  /// A page of a b-tree, and the pages below it.
  struct Subtree {
    let page: UInt32
    /// The rowids under the page: greater than `after`, up to `through`; nil means no bound.
    let after: Int64?
    let through: Int64?
  }

  /// One result of walking a b-tree.
  enum Finding {
    case row(page: UInt32, rowID: Int64, [StoredValue])
    /// A row whose overflow pages are lost, or whose bytes are not a record.
    case brokenRow(rowID: Int64)
    /// Cells that lie outside their page.
    case brokenCells(count: Int)
    /// A page that cannot be read as one of the b-tree, and with it a subtree.
    case loss(Subtree)
  }

  /// Walks a tree in the order of its keys.
  mutating func walk<E>(
    _ root: UInt32, isTable: Bool, _ body: (Finding) throws(E) -> Void
  ) throws(E) {
    var stack = [Subtree(page: root, after: nil, through: nil)]
    while let subtree = stack.popLast() {
      guard claimed.insert(subtree.page), let page = source.treePage(subtree.page),
        page.kind.isTable == isTable
      else {
        try body(.loss(subtree))
        continue
      }
      try rows(of: page, body)
      guard page.kind.isInterior else { continue }
      var children: [Subtree] = []
      var after = subtree.after
      for cell in page.cells {
        children.append(
          Subtree(page: cell.child, after: after, through: isTable ? cell.rowID : nil))
        if isTable { after = cell.rowID }
      }
      children.append(Subtree(page: page.rightChild, after: after, through: subtree.through))
      stack.append(contentsOf: children.reversed())
    }
  }

  /// The rows of one page.
  mutating func rows<E>(
    of page: BTreePage, _ body: (Finding) throws(E) -> Void
  ) throws(E) {
    if page.brokenCellCount > 0 { try body(.brokenCells(count: page.brokenCellCount)) }
    for cell in page.cells {
      guard let payload = cell.payload else { continue }
      if let bytes = wholePayload(payload), let values = try? StoredRecord.values(of: bytes[...]) {
        try body(.row(page: page.number, rowID: cell.rowID, values))
      } else {
        try body(.brokenRow(rowID: cell.rowID))
      }
    }
  }

  /// A record with its overflow pages; nil if one of them is lost.
  private mutating func wholePayload(_ payload: BTreePage.Payload) -> [UInt8]? {
    let perPage = BTreePage.usableByteCount - 4
    var bytes = Array(payload.local)
    let missing = payload.byteCount - bytes.count
    // A length beyond the whole database is invalid.
    guard missing <= Int(source.pageCount) * perPage else { return nil }
    var next = payload.overflowPage
    while bytes.count < payload.byteCount {
      guard claimed.insert(next), let page = source.page(next) else { return nil }
      let count = min(perPage, payload.byteCount - bytes.count)
      bytes.append(contentsOf: page[4..<4 + count])
      next = page.bigEndianWord(at: 0)
    }
    return bytes
  }
}
