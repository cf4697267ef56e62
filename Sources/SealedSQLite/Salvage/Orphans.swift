/// The pages with rows that no tree leads to.
struct Orphans {
  /// In the order of their numbers.
  private(set) var pages: [UInt32] = []
  /// The interior pages without a tree, by the pages beneath them.
  private var parents: [UInt32: UInt32] = [:]

  /// Reads every page that is not claimed.
  ///
  /// - Parameter isMapped: whether some of them belong to a pointer map.
  init(_ source: any PageSource, claimed: PageSet, isMapped: Bool) {
    guard source.pageCount > 1 else { return }
    for number in 2...source.pageCount where !claimed.contains(number) {
      if isMapped && PointerMap.mapPage(for: number) == number { continue }
      guard let bytes = source.page(number), let page = BTreePage(bytes, number: number) else {
        continue
      }
      if page.kind != .tableInterior { pages.append(number) }
      guard page.kind.isInterior else { continue }
      for cell in page.cells { parents[cell.child] = number }
      parents[page.rightChild] = number
    }
  }

  /// The uppermost page over a page, itself where there is none.
  func top(of number: UInt32) -> UInt32 {
    var current = number
    var visited: Set<UInt32> = [number]
    while let parent = parents[current], visited.insert(parent).inserted { current = parent }
    return current
  }
}
