/// Reads and opens every page of a database file, in large blocks from its start to its end.
struct PageScan: ~Copyable {
  private static let pagesAtOnce = 128

  private let block = Scratch(byteCount: pagesAtOnce * PageLayout.byteCount)
  private let page = Scratch(byteCount: PageLayout.byteCount)

  /// Reports the result for each page but the lock page, and after each block the number of pages.
  borrowing func run(
    _ image: SealedImage, advance: (Int) -> Void, _ body: (UInt32, SealedImage.Reading) -> Void
  ) {
    var first: UInt32 = 1
    while first <= image.filePageCount {
      let count = min(Self.pagesAtOnce, Int(image.filePageCount - first) + 1)
      let offset = PageLayout.offset(ofPage: first)
      let isRead = unsafe image.file.read(
        block.pointer, count * PageLayout.byteCount, at: offset)
      for index in 0..<count {
        let number = first + UInt32(index)
        if number == PageLayout.lockPageNumber { continue }
        let place = unsafe block.pointer + index * PageLayout.byteCount
        // A block that cannot be read as a whole is read page by page.
        let isThere =
          unsafe isRead
          || image.file.read(
            place, PageLayout.byteCount, at: PageLayout.offset(ofPage: number))
        let reading =
          unsafe isThere
          ? SealedImage.open(place, number, image.keys.page, into: page.pointer) : .damaged
        body(number, reading)
      }
      first += UInt32(count)
      advance(count)
    }
  }
}

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

extension [UInt8] {
  /// Four bytes, big endian.
  ///
  /// - Precondition: they lie within the array.
  package func bigEndianWord(at offset: Int) -> UInt32 {
    UInt32(self[offset]) << 24 | UInt32(self[offset + 1]) << 16
      | UInt32(self[offset + 2]) << 8 | UInt32(self[offset + 3])
  }
}
