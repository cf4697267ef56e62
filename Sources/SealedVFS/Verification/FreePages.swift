/// The database's list of free pages: <https://sqlite.org/fileformat2.html#the_freelist>.
package struct FreePages {
  /// The wanted pages that the list names, trunk pages included.
  package private(set) var pages: Set<UInt32> = []

  /// Whether the whole list could be read.
  package private(set) var isComplete = false

  /// Follows the list.
  ///
  /// - Parameters:
  ///   - isWanted: selects the pages to remember, because the list can be as long as the database.
  ///   - page: reads a page; nil if the page is lost.
  package init(
    where isWanted: (UInt32) -> Bool = { _ in true }, _ page: (UInt32) -> [UInt8]?
  ) {
    guard let first = page(1) else { return }
    var trunk = first.bigEndianWord(at: 32)
    var visited: Set<UInt32> = []
    while trunk != 0 {
      guard visited.insert(trunk).inserted, let page = page(trunk) else { return }
      if isWanted(trunk) { pages.insert(trunk) }
      let leafCount = Int(page.bigEndianWord(at: 4))
      guard leafCount <= PageLayout.contentByteCount / 4 - 2 else { return }
      for index in 0..<leafCount {
        let leaf = page.bigEndianWord(at: 8 + 4 * index)
        if isWanted(leaf) { pages.insert(leaf) }
      }
      trunk = page.bigEndianWord(at: 0)
    }
    isComplete = true
  }
}
