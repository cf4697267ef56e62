package import SystemPackage
package import VaultCrypto

/// A sealed database as the next opening would find it, read page by page without changing a byte.
///
/// A page comes from the committed frames of the log, else from the hot journal, else from the
/// file. While the image lives, no connection can write: it holds SHARED, or EXCLUSIVE if there is
/// or can be a log.
package final class SealedImage {
  let file: LockedInputFile
  let keys: FileKeys
  private(set) var log: LogScan
  let journal: JournalScan
  let logFile: LockedInputFile?
  private let journalFile: LockedInputFile?

  /// Whether the first 16 bytes of the file are wrong, although the key is right.
  package let isHeaderDamaged: Bool

  /// The number of whole pages in the file.
  let filePageCount: UInt32
  /// The number of bytes after the last whole page.
  let trailingByteCount: Int

  /// The number of pages of the database, from the best source there is.
  package private(set) var pageCount: UInt32 = 0

  private let sealed = Scratch(byteCount: PageLayout.byteCount)

  /// The first OpenSSL failure; its page counts as damaged.
  private var cipherFailure: SealedDatabaseError?

  /// The result of reading a page.
  enum Reading: Equatable {
    case whole
    case damaged
    /// The page is all zeros: nothing was written there, or nothing is left.
    case empty
    /// The page lies past the end of the file.
    case missing
  }

  /// Opens and locks the files and reads log and journal.
  ///
  /// - Parameters:
  ///   - fileID: the id that the database must have; nil takes the id that the header states.
  ///   - readingCount: the number of times that each page will be read.
  ///   - progress: receives the frames read, and the number of all frames and pages.
  package init(
    _ path: FilePath, key: borrowing SecretBytes, fileID: [UInt8]? = nil,
    over base: String = "unix", readingCount: Int = 1, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    let files = try DatabaseFiles(path, over: base)
    let full = files.path
    guard key.byteCount == KeySource.keyByteCount else {
      throw SealedDatabaseError(.invalidArgument, path: full, detail: "a key must have 32 bytes")
    }
    file = try files.openDatabase()
    try file.lockShared()
    if try files.log() != nil { try file.lockExclusively() }
    let byteCount = try file.byteCount()
    guard byteCount > 0 || fileID != nil else { throw SealedDatabaseError(.notFound, path: full) }
    guard let filePageCount = UInt32(exactly: byteCount / Int64(PageLayout.byteCount)) else {
      throw SealedDatabaseError(.notSealed, path: full, detail: "the file is too long")
    }
    self.filePageCount = filePageCount
    trailingByteCount = Int(byteCount % Int64(PageLayout.byteCount))
    let identity: ImageIdentity
    do throws(SealedDatabaseError) {
      identity = try ImageIdentity(file, files, key: key, fileID: fileID)
    } catch  where byteCount == 0 && error.code == .notSealed {
      throw SealedDatabaseError(.notFound, path: full)
    }
    (keys, isHeaderDamaged) = (identity.keys, identity.isHeaderDamaged)
    if try identity.isPossiblyInWALMode(file) { try file.lockExclusively() }
    logFile = try files.log()
    log =
      try logFile.map { file throws(SealedDatabaseError) in
        try LogScan(file, keys: identity.keys) { done, frameCount in
          progress(
            PageProgress(
              completedPageCount: done, pageCount: frameCount + readingCount * Int(filePageCount)))
        }
      } ?? LogScan()
    journalFile = try files.journal()
    let isReserved = try file.isReservedElsewhere()
    journal =
      try journalFile.map { file throws(SealedDatabaseError) in
        try JournalScan(file, keys: identity.keys, isReservedElsewhere: isReserved)
      } ?? JournalScan()
    pageCount = countPages()
  }

  /// Whether log and journal are intact, so that the image has no page of an unfinished
  /// transaction.
  package var areLogAndJournalWhole: Bool {
    log.report.state != .foreign && journal.report.state != .foreign
      && journal.report.state != .damaged && journal.report.damagedRecordCount == 0
  }

  /// The frames of the log that were left out.
  package var discardedLogTail: DiscardedLogTail? { log.report.discardedTail }

  /// Reads the commits that the log's header hides, where the database lacks them.
  ///
  /// - Returns: what they are; nil where there are none.
  package func followOtherGeneration()
    throws(SealedDatabaseError) -> VerificationReport.Log.OtherGeneration?
  {
    guard let other = try otherGeneration() else { return nil }
    log.follow(other)
    pageCount = countPages()
    return other.report
  }

  /// The number of pages that the log, the journal, page 1 or else the file's length states.
  private func countPages() -> UInt32 {
    if let count = log.pageCount ?? journal.pageCount { return count }
    let cutPageCount: UInt32 = trailingByteCount > 0 ? 1 : 0
    let page = Scratch(byteCount: PageLayout.byteCount)
    if unsafe read(1, into: page.pointer) == .whole,
      let count = unsafe UnsafeRawPointer(page.pointer).statedPageCount
    {
      return count
    }
    return filePageCount + cutPageCount
  }

  /// Whether the log or the journal holds the current copy of a page.
  func isCovered(_ number: UInt32) -> Bool {
    log.frames[number] != nil || journal.records[number] != nil
  }

  /// Reads and opens the current copy of a page, reserved bytes zero; all zeros unless it is whole.
  func read(_ number: UInt32, into target: UnsafeMutableRawPointer) -> Reading {
    guard number != 0 else { return .missing }
    if let frame = log.frames[number], let logFile {
      let offset = LogLayout.offset(ofFrame: frame) + Int64(LogLayout.frameHeaderByteCount)
      return unsafe open(number, logFile, at: offset, keys.page, target)
    }
    if let offset = journal.records[number], let journalFile {
      return unsafe open(number, journalFile, at: offset, keys.journal, target)
    }
    guard number <= filePageCount else { return .missing }
    return unsafe open(number, file, at: PageLayout.offset(ofPage: number), keys.page, target)
  }

  private func open(
    _ number: UInt32, _ file: LockedInputFile, at offset: Int64, _ cipher: PageCipher,
    _ target: UnsafeMutableRawPointer
  ) -> Reading {
    guard unsafe file.read(sealed.pointer, PageLayout.byteCount, at: offset) else {
      return .damaged
    }
    return unsafe open(sealed.pointer, number, cipher, into: target)
  }

  /// Throws the first OpenSSL failure; call it after reading all pages.
  package func requireWorkingCipher() throws(SealedDatabaseError) {
    if let cipherFailure { throw cipherFailure }
  }

  /// Opens a sealed page that was read.
  func open(
    _ sealed: UnsafeRawPointer, _ number: UInt32, _ cipher: PageCipher,
    into target: UnsafeMutableRawPointer
  ) -> Reading {
    do throws(CryptoError) {
      if try unsafe cipher.open(sealed, number: number, into: target) { return .whole }
    } catch {
      cipherFailure = cipherFailure ?? SealedDatabaseError(error, path: file.path)
      return .damaged
    }
    return unsafe UnsafeRawBufferPointer(start: sealed, count: PageLayout.byteCount).isZero
      ? .empty : .damaged
  }

  /// A page's contents, 4096 bytes with the last 40 zero; nil if the page is lost.
  package func page(_ number: UInt32) -> [UInt8]? {
    guard number >= 1, number <= pageCount else { return nil }
    var page = [UInt8](repeating: 0, count: PageLayout.byteCount)
    return unsafe read(number, into: &page) == .whole ? page : nil
  }
}
