internal import CSQLite
internal import VaultCrypto

/// The pages of an open database, sealed anew under another key, a mebibyte at a time.
struct PageCopy: ~Copyable {
  private static let pagesAtOnce = 256

  private let source: MainFile
  private let cipher: PageCipher
  private let pageCount: UInt32
  private var nonces = NonceSequence()
  private var number: UInt32 = 1
  private let opened = Scratch(byteCount: PageLayout.byteCount)

  /// Begins a copy; the caller holds the database's EXCLUSIVE lock.
  init(
    _ source: MainFile, header: SealedHeader, key: borrowing SecretBytes
  ) throws(SealedFileError) {
    var byteCount: Int64 = 0
    guard unsafe source.base.byteCount(&byteCount) == SQLITE_OK,
      let cipher = try? PageCipher(.page, key: key, header: header)
    else { throw SealedFileError(.ioFailed, path: source.registered.path) }
    guard byteCount % Int64(PageLayout.byteCount) == 0,
      let pageCount = UInt32(exactly: byteCount / Int64(PageLayout.byteCount))
    else { throw SealedFileError(.truncated, path: source.registered.path) }
    self.source = source
    self.cipher = cipher
    self.pageCount = pageCount
  }

  /// The next pages; nil after the last.
  mutating func next() throws(SealedFileError) -> [UInt8]? {
    guard number <= pageCount else { return nil }
    let count = min(Self.pagesAtOnce, Int(pageCount - number) + 1)
    var pages = [UInt8](repeating: 0, count: count * PageLayout.byteCount)
    for index in 0..<count {
      try copyPage(into: &pages, at: index * PageLayout.byteCount)
      number += 1
    }
    return pages
  }

  private mutating func copyPage(
    into pages: inout [UInt8], at offset: Int
  ) throws(SealedFileError) {
    if number == PageLayout.lockPageNumber { return }
    guard unsafe source.readPage(number, into: opened.pointer) == SQLITE_OK else {
      // A hole, where SQLite keeps nothing: it stays one.
      if unsafe source.sealed.bytes(0..<PageLayout.byteCount).isZero { return }
      throw source.registered.fault ?? SealedFileError(.ioFailed, path: source.registered.path)
    }
    let isSealed = unsafe pages.withUnsafeMutableBytes { bytes in
      guard let start = bytes.baseAddress else { return false }
      return unsafe cipher.seal(
        opened.pointer, number: number, into: start + offset, nonces: &nonces)
    }
    guard isSealed else {
      throw SealedFileError(
        .reserveInUse, path: source.registered.path, pageNumber: number)
    }
  }
}
