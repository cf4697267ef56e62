/// Opened pages of an SQLite database, some of them lost.
struct PageSource {
  /// The number of pages of the database.
  let pageCount: UInt32

  /// The 4096 bytes of a page, the last 40 zero; nil if the page is lost.
  let page: (UInt32) -> [UInt8]?

  /// The numbers of all pages after the first, which is the root of the schema.
  var numbersAfterFirst: StrideThrough<UInt32> { stride(from: 2, through: pageCount, by: 1) }

  /// A page of a b-tree; nil if the page is lost or of another kind.
  func treePage(_ number: UInt32) -> BTreePage? {
    page(number).flatMap { BTreePage($0, number: number) }
  }
}

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
