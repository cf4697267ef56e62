internal import VaultCrypto

/// The pages of an open database, sealed again under another key, one mebibyte at a time.
///
/// It reads the underlying file in large pieces. Its memory is two buffers of that size for any
/// size of database.
struct PageCopy: ~Copyable {
  private static let pagesAtOnce = 256

  /// The number of pages to copy.
  let pageCount: UInt32
  /// The number of pages copied so far.
  var completedPageCount: UInt32 { nextPageNumber - 1 }

  private let source: MainFile
  private let cipher: PageCipher
  private var nonces = NonceSequence()
  private var nextPageNumber: UInt32 = 1
  private let opened: Scratch
  private let sealed: Scratch
  /// The list of free pages, read when a page does not open.
  private var freePages: Set<UInt32>?

  /// Begins a copy; the caller holds the database's EXCLUSIVE lock and has emptied its log.
  init(
    _ source: MainFile, header: SealedHeader, key: borrowing SecretBytes
  ) throws(SealedDatabaseError) {
    let pageCount = try Self.pageCount(of: source)
    cipher = try translatingCryptoErrors(
      at: source.registered.path, PageCipher(.page, key: key, header: header))
    self.source = source
    self.pageCount = pageCount
    opened = Scratch(byteCount: PageLayout.byteCount)
    sealed = Scratch(byteCount: PageLayout.byteCount * Self.pagesAtOnce)
  }

  /// The size that page 1 states; bytes after it in the file do not belong to the database.
  private static func pageCount(of source: MainFile) throws(SealedDatabaseError) -> UInt32 {
    let path = source.registered.path
    let byteCount: Int64
    do throws(ResultCode) {
      byteCount = try source.base.byteCount()
    } catch {
      throw SealedDatabaseError(.inputOutput, path: path)
    }
    guard let held = UInt32(exactly: byteCount / Int64(PageLayout.byteCount)), held > 0 else {
      throw SealedDatabaseError(.truncated, path: path, pageNumber: 1)
    }
    let firstPage = Scratch(byteCount: PageLayout.byteCount)
    do throws(ResultCode) {
      try unsafe source.readPage(1, into: firstPage.pointer)
    } catch {
      throw source.faults.newest(reportedAs: error.value)
        ?? SealedDatabaseError(.inputOutput, path: path)
    }
    guard let stated = unsafe UnsafeRawPointer(firstPage.pointer).statedPageCount else {
      return held
    }
    guard stated <= held else {
      throw SealedDatabaseError(.truncated, path: path, pageNumber: stated)
    }
    return stated
  }

  /// The next pages; nil after the last.
  mutating func next() throws(SealedDatabaseError) -> [UInt8]? {
    guard nextPageNumber <= pageCount else { return nil }
    let count = min(Self.pagesAtOnce, Int(pageCount - nextPageNumber) + 1)
    let byteCount = count * PageLayout.byteCount
    do throws(ResultCode) {
      try unsafe source.base.read(
        sealed.pointer, byteCount, at: PageLayout.offset(ofPage: nextPageNumber))
    } catch {
      throw SealedDatabaseError(
        error.isShortRead ? .truncated : .inputOutput,
        path: source.registered.path)
    }
    var copied = [UInt8](repeating: 0, count: byteCount)
    nonces.end()  // a new random start for each piece, as for a transaction
    for index in 0..<count {
      try copyPage(nextPageNumber, at: index * PageLayout.byteCount, into: &copied)
      nextPageNumber += 1
    }
    return copied
  }

  /// Copies a page, but not one of zeros, SQLite's lock page or a free page that does not open.
  private mutating func copyPage(
    _ number: UInt32, at offset: Int, into copied: inout [UInt8]
  ) throws(SealedDatabaseError) {
    let page = unsafe sealed.pointer + offset
    let isEmpty = unsafe UnsafeRawBufferPointer(start: page, count: PageLayout.byteCount).isZero
    if isEmpty || number == PageLayout.lockPageNumber { return }
    let path = source.registered.path
    let isOpen = try unsafe translatingCryptoErrors(
      at: path, source.keys.page.open(page, number: number, into: opened.pointer))
    guard isOpen else {
      if isFree(number) { return }
      throw SealedDatabaseError(.damagedPage, path: source.registered.path, pageNumber: number)
    }
    let hasRoom: Bool
    do throws(CryptoError) {
      hasRoom = try unsafe copied.withUnsafeMutableBufferPointer {
        bytes throws(CryptoError) -> Bool in
        guard let start = bytes.baseAddress else { return false }
        return try unsafe cipher.seal(
          opened.pointer, number: number, into: start + offset, nonces: &nonces)
      }
    } catch {
      throw SealedDatabaseError(error, path: path)
    }
    guard hasRoom else {
      throw SealedDatabaseError(
        .reserveInUse, path: source.registered.path, pageNumber: number)
    }
  }

  /// Whether SQLite stores nothing in a page.
  ///
  /// A power cut in a transaction that allocates a free page leaves it torn. The journal has no
  /// copy of it, because SQLite reads no free page before it writes it.
  private mutating func isFree(_ number: UInt32) -> Bool {
    if let freePages { return freePages.contains(number) }
    let (source, pageCount) = (source, pageCount)  // the closure cannot capture a mutating `self`
    let found = FreePages { number in
      guard (1...pageCount).contains(number) else { return nil }
      var page = [UInt8](repeating: 0, count: PageLayout.byteCount)
      // If the list is unreadable, no page counts as free, and the damaged page is reported.
      return (try? unsafe source.readPage(number, into: &page)) == nil ? nil : page
    }
    freePages = found.pages
    return found.pages.contains(number)
  }
}
