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
          ? image.open(place, number, image.keys.page, into: page.pointer) : .damaged
        body(number, reading)
      }
      first += UInt32(count)
      advance(count)
    }
  }
}
