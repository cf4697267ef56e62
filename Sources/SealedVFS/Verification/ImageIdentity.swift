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
  private static let probedRecordCount: Int64 = 4096

  /// Finds the identity of the file.
  ///
  /// - Parameter fileID: the id that the database must have; nil takes the id that the file states.
  init(
    _ file: LockedInputFile, _ files: DatabaseFiles, key: borrowing SecretBytes,
    fileID: [UInt8]? = nil
  ) throws(SealedDatabaseError) {
    var bytes = [UInt8](repeating: 0, count: SealedHeader.byteCount)
    if try file.byteCount() >= SealedHeader.byteCount {
      guard let found = file.bytes(SealedHeader.byteCount, at: 0) else {
        throw SealedDatabaseError(.inputOutput, path: file.path)
      }
      bytes = found
    }
    let kind = FileInspection(firstBytes: bytes)
    if case .sealed(let header) = kind, fileID == nil || fileID == header.fileID,
      header.matches(key: key), let keys = try? FileKeys(header: header, key: key)
    {
      (self.keys, isHeaderDamaged) = (keys, false)
      return
    }
    if fileID == nil { try Self.requireNoOtherFormat(kind, file) }
    let candidates =
      fileID.map { [$0] } ?? [Array(bytes[8...])] + Self.fileIDs(beside: files)
    for candidate in candidates {
      guard let keys = Self.keys(candidate, key) else { continue }
      let isRight =
        try fileID == nil
        ? Self.opensAnyPage(keys, file, pageCount: Self.probedPageCount)
        : Self.isDatabase(under: keys, file, files, kind)
      guard isRight else { continue }
      (self.keys, isHeaderDamaged) = (keys, true)
      return
    }
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

  private static func keys(_ fileID: [UInt8], _ key: borrowing SecretBytes) -> FileKeys? {
    guard let header = try? SealedHeader(fileID: fileID, key: key) else { return nil }
    return try? FileKeys(header: header, key: key)
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
      if try opensAnyPage(keys, file, pageCount: .max) { return true }
      return try opensAnyFrame(keys, files.log())
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
    for number in 0..<UInt32(clamping: frameCount) {
      let offset = LogLayout.offset(ofFrame: number + 1)
      guard unsafe log.read(frame.pointer, frame.byteCount, at: offset) else { continue }
      let pageNumber = unsafe frame.pointer.bigEndianWord(at: 0)
      if unsafe keys.page.open(
        frame.pointer + LogLayout.frameHeaderByteCount, number: pageNumber, into: page.pointer)
      {
        return true
      }
    }
    return false
  }

  /// Whether at least one of the first pages of the file opens.
  private static func opensAnyPage(
    _ keys: FileKeys, _ file: LockedInputFile, pageCount maximumPageCount: UInt32
  ) throws(SealedDatabaseError) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let pageCount = UInt32(clamping: try file.byteCount() / Int64(PageLayout.byteCount))
    for index in 0..<min(pageCount, maximumPageCount) {
      let number = index + 1
      let offset = PageLayout.offset(ofPage: number)
      if unsafe file.read(sealed.pointer, PageLayout.byteCount, at: offset)
        && keys.page.open(sealed.pointer, number: number, into: page.pointer)
      {
        return true
      }
    }
    return false
  }

  /// The file ids in copies of page 1 in the log and the journal.
  private static func fileIDs(beside files: DatabaseFiles) -> [[UInt8]] {
    let places = [
      (
        try? files.log(), LogLayout.headerByteCount, LogLayout.frameHeaderByteCount,
        LogLayout.frameByteCount
      ),
      (try? files.journal(), JournalLayout.headerByteCount, 4, JournalLayout.recordByteCount),
    ]
    return places.compactMap { file, first, before, step in
      guard let file, let end = try? file.byteCount() else { return nil }
      for index in 0..<probedRecordCount {
        let offset = Int64(first) + index * Int64(step)
        let count = before + SealedHeader.byteCount
        guard offset + Int64(count) <= end, let bytes = file.bytes(count, at: offset) else { break }
        if bytes.bigEndianWord(at: 0) == 1,
          case .sealed(let header) = FileInspection(firstBytes: Array(bytes[before...]))
        {
          return header.fileID
        }
      }
      return nil
    }
  }

  /// Whether the database is in WAL mode (byte 18 or 19 of page 1 is 2), or page 1 does not open.
  ///
  /// Its connections then write a log under SHARED locks.
  func isPossiblyInWALMode(_ file: LockedInputFile) throws(SealedDatabaseError) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    guard try file.byteCount() >= PageLayout.byteCount,
      unsafe file.read(sealed.pointer, PageLayout.byteCount, at: 0),
      unsafe keys.page.open(sealed.pointer, number: 1, into: page.pointer)
    else { return true }
    return unsafe page.bytes(18..<20).contains(2)
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
