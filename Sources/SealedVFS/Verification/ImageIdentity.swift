package import SystemPackage
package import VaultCrypto

/// The identity and keys of a database file, even if its first 16 bytes are damaged.
///
/// Each copy of page 1 contains the file id. Any page that opens proves that the id and the key are
/// right. A damaged header therefore loses only its own bytes.
struct ImageIdentity {
  let keys: FileKeys
  let isHeaderDamaged: Bool

  /// The number of pages to try under a guessed id.
  private static let probedPageCount: UInt32 = 32

  /// Finds the identity of the file.
  ///
  /// - Parameter fileID: the id that the database must have; nil takes the id that the file states.
  init(
    _ file: LockedInputFile, _ files: DatabaseFiles, key: borrowing SecretBytes,
    fileID: [UInt8]? = nil
  ) throws(SealedDatabaseError) {
    var bytes = [UInt8](repeating: 0, count: SealedHeader.byteCount)
    if try file.byteCount() >= SealedHeader.byteCount {
      bytes = try file.bytes(SealedHeader.byteCount, at: 0)
    }
    let kind = FileInspection(firstBytes: bytes)
    if case .sealed(let header) = kind, fileID == nil || fileID == header.fileID,
      try header.matches(key: key, at: file.path)
    {
      keys = try translatingCryptoErrors(at: file.path, FileKeys(header: header, key: key))
      isHeaderDamaged = false
      return
    }
    if fileID == nil { try Self.requireNoOtherFormat(kind, file) }
    var candidates = [fileID ?? Array(bytes[8...])]
    var unreadable: SealedDatabaseError?
    if fileID == nil {
      do throws(SealedDatabaseError) {
        candidates += try files.candidates(under: key)
      } catch {
        unreadable = error
      }
    }
    for candidate in candidates {
      let keys = try translatingCryptoErrors(
        at: file.path, FileKeys(header: SealedHeader(fileID: candidate, key: key), key: key))
      do throws(SealedDatabaseError) {
        let isRight =
          try fileID == nil
          ? Self.opensAnyPage(keys, file, pageCount: Self.probedPageCount)
          : Self.isDatabase(under: keys, file, files, kind)
        guard isRight else { continue }
        (self.keys, isHeaderDamaged) = (keys, true)
        return
      } catch {
        unreadable = error
      }
    }
    // The page that cannot be read could be the one that opens.
    if let unreadable { throw unreadable }
    try Self.requireNoOtherFormat(kind, file)
    let isSealed = if case .sealed = kind { true } else { false }
    throw SealedDatabaseError(
      isSealed ? .wrongKey : .notSealed, path: file.path,
      detail: "no page opens under this key, or the first 16 bytes are damaged")
  }

  private static func requireNoOtherFormat(
    _ kind: FileInspection, _ file: LockedInputFile
  ) throws(SealedDatabaseError) {
    switch kind {
    case .plainSQLite, .newerVersion: _ = try kind.header(at: file.path)
    case .sealed, .foreign, .absent, .empty: break
    }
  }

  /// Whether a file with another header is the database with this id and key nevertheless.
  ///
  /// Only page 1 is sealed together with the version, so only page 1 can prove a file that states a
  /// newer one. Frames of the log prove nothing about a file that begins like another database.
  private static func isDatabase(
    under keys: FileKeys, _ file: LockedInputFile, _ files: DatabaseFiles, _ kind: FileInspection
  ) throws(SealedDatabaseError) -> Bool {
    switch kind {
    case .newerVersion: return try opensAnyPage(keys, file, pageCount: 1)
    case .sealed, .plainSQLite: return try opensAnyPage(keys, file, pageCount: .max)
    case .foreign, .absent, .empty:
      let opensPage = Result { () throws(SealedDatabaseError) in
        try opensAnyPage(keys, file, pageCount: .max)
      }
      if case .success(true) = opensPage { return true }
      if try opensAnyFrame(keys, files.log()) { return true }
      return try opensPage.get()
    }
  }

  /// Whether the page of at least one frame opens.
  private static func opensAnyFrame(
    _ keys: FileKeys, _ log: LockedInputFile?
  ) throws(SealedDatabaseError) -> Bool {
    guard let log else { return false }
    let frame = Scratch(byteCount: LogLayout.frameByteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let frameCount = LogLayout.frameCount(inFileOf: try log.byteCount())
    var isUnreadable = false
    for number in 0..<UInt32(clamping: frameCount) {
      let offset = LogLayout.offset(ofFrame: number + 1)
      guard unsafe log.read(frame.pointer, frame.byteCount, at: offset) else {
        isUnreadable = true
        continue
      }
      let pageNumber = unsafe frame.pointer.bigEndianWord(at: 0)
      let (sealed, target) = unsafe (frame.pointer + LogLayout.frameHeaderByteCount, page.pointer)
      let isOpen = try unsafe translatingCryptoErrors(
        at: log.path, keys.page.open(sealed, number: pageNumber, into: target))
      if isOpen { return true }
    }
    if isUnreadable { throw SealedDatabaseError(.inputOutput, path: log.path) }
    return false
  }

  /// Whether at least one of the first pages of the file opens.
  private static func opensAnyPage(
    _ keys: FileKeys, _ file: LockedInputFile, pageCount maximumPageCount: UInt32
  ) throws(SealedDatabaseError) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let pageCount = UInt32(clamping: try file.byteCount() / Int64(PageLayout.byteCount))
    var isUnreadable = false
    for index in 0..<min(pageCount, maximumPageCount) {
      let number = index + 1
      let offset = PageLayout.offset(ofPage: number)
      guard unsafe file.read(sealed.pointer, PageLayout.byteCount, at: offset) else {
        isUnreadable = true
        continue
      }
      let isOpen = try unsafe translatingCryptoErrors(
        at: file.path, keys.page.open(sealed.pointer, number: number, into: page.pointer))
      if isOpen { return true }
    }
    if isUnreadable { throw SealedDatabaseError(.inputOutput, path: file.path) }
    return false
  }

  /// Whether the database is in WAL mode (byte 18 or 19 of page 1 is 2), or page 1 does not open.
  ///
  /// Its connections then write a log under SHARED locks.
  func isPossiblyInWALMode(_ file: LockedInputFile) throws(SealedDatabaseError) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    guard try file.byteCount() >= PageLayout.byteCount,
      unsafe file.read(sealed.pointer, PageLayout.byteCount, at: 0),
      try unsafe translatingCryptoErrors(
        at: file.path, keys.page.open(sealed.pointer, number: 1, into: page.pointer))
    else { return true }
    return unsafe page.bytes(18..<20).contains(2)
  }
}

extension DatabaseFiles {
  /// File ids of copies of the header: of authentic ones, then of the first ones.
  fileprivate func candidates(
    under key: borrowing SecretBytes
  ) throws(SealedDatabaseError) -> [[UInt8]] {
    let authentic = try headerCopies { (copy) throws(SealedDatabaseError) in
      try copy.isAuthenticated(by: key)
    }
    return try (authentic + headerCopies { _ in true }).map(\.header.fileID)
  }
}

extension SealedVFS {
  /// Whether a file is the database with this id and key, even if its first 16 bytes differ.
  ///
  /// The proof is a page that opens. Every page is tried, so that a file of another database is
  /// read to its end.
  ///
  /// - Throws: `busy`, `inputOutput`.
  package static func recognizes(
    _ path: FilePath, fileID: [UInt8], key: borrowing SecretBytes, over base: String = "unix"
  ) throws(SealedDatabaseError) -> Bool {
    let files = try DatabaseFiles(path, over: base)
    do throws(SealedDatabaseError) {
      let file = try files.openDatabase()
      try file.lockShared()
      _ = try ImageIdentity(file, files, key: key, fileID: fileID)
      return true
    } catch
      where [.notFound, .notSealed, .wrongKey, .plainDatabase, .newerVersion].contains(error.code)
    {
      return false
    }
  }
}
