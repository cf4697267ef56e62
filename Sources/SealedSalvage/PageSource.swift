internal import SealedVFS

/// Opened pages of an SQLite database, some of them lost.
protocol PageSource: AnyObject {
  /// The number of pages of the database.
  var pageCount: UInt32 { get }

  /// The 4096 bytes of a page, the last 40 zero; nil if the page is lost.
  func page(_ number: UInt32) -> [UInt8]?
}

extension PageSource {
  /// The numbers of all pages after the first, which is the root of the schema.
  var numbersAfterFirst: StrideThrough<UInt32> { stride(from: 2, through: pageCount, by: 1) }

  /// A page of a b-tree; nil if the page is lost or of another kind.
  func treePage(_ number: UInt32) -> BTreePage? {
    page(number).flatMap { BTreePage($0, number: number) }
  }
}

extension SealedImage: PageSource {}

/// A set of page numbers, one bit each.
struct PageSet {
  private var words: [UInt64]
  private let pageCount: UInt32

  init(pageCount: UInt32) {
    self.pageCount = pageCount
    words = Array(repeating: 0, count: Int(pageCount) / 64 + 1)
  }

  func contains(_ number: UInt32) -> Bool {
    number <= pageCount && words[Int(number / 64)] & 1 << UInt64(number % 64) != 0
  }

  /// Adds a page; returns false if the set has it already, or the database does not.
  mutating func insert(_ number: UInt32) -> Bool {
    guard number >= 1, number <= pageCount, !contains(number) else { return false }
    words[Int(number / 64)] |= 1 << UInt64(number % 64)
    return true
  }
}

/// Pages that report how many of them were read.
final class CountedPages: PageSource {
  private static let pagesPerStep = 128

  private let source: any PageSource
  private let progress: (PageProgress) -> Void
  private var readCount = 0

  let pageCount: UInt32

  init(_ source: any PageSource, _ progress: @escaping (PageProgress) -> Void) {
    self.source = source
    self.progress = progress
    pageCount = source.pageCount
  }

  func page(_ number: UInt32) -> [UInt8]? {
    readCount += 1
    if readCount % Self.pagesPerStep == 0 {
      progress(
        PageProgress(
          completedPageCount: min(readCount, Int(pageCount)), pageCount: Int(pageCount)))
    }
    return source.page(number)
  }
}
