internal import CSQLite
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
    _ file: LockedInputFile, _ siblings: ImageFiles, key: borrowing SecretBytes,
    fileID: [UInt8]? = nil
  ) throws(SealedDatabaseError) {
    let start = Scratch(byteCount: SealedHeader.byteCount)
    if try file.byteCount() >= SealedHeader.byteCount,
      unsafe !file.read(start.pointer, SealedHeader.byteCount, at: 0)
    {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    let bytes = unsafe Array(start.bytes(0..<SealedHeader.byteCount))
    let reading = HeaderReading(bytes)
    if case .sealed(let header) = reading, fileID == nil || fileID == header.fileID,
      header.matches(key: key), let keys = try? FileKeys(header: header, key: key)
    {
      (self.keys, isHeaderDamaged) = (keys, false)
      return
    }
    if let fileID {
      if let keys = Self.keys(fileID, key), try Self.isProved(keys, file, siblings, reading) {
        (self.keys, isHeaderDamaged) = (keys, true)
        return
      }
    } else {
      try Self.requireNoOtherFormat(reading, file)
      for fileID in [Array(bytes[8...])] + Self.fileIDs(beside: file, siblings) {
        if let keys = Self.keys(fileID, key),
          try Self.isProved(keys, file, pageCount: Self.probedPageCount)
        {
          (self.keys, isHeaderDamaged) = (keys, true)
          return
        }
      }
    }
    try Self.requireNoOtherFormat(reading, file)
    let isSealed = if case .sealed = reading { true } else { false }
    throw SealedDatabaseError(
      isSealed ? .wrongKey : .notSealed, path: file.path,
      detail: "no page opens under this key, or the first 16 bytes are damaged")
  }

  private static func requireNoOtherFormat(
    _ reading: HeaderReading, _ file: LockedInputFile
  ) throws(SealedDatabaseError) {
    switch reading {
    case .plainSQLite: throw SealedDatabaseError(.plainDatabase, path: file.path)
    case .newerVersion(let version):
      throw SealedDatabaseError(.newerVersion, path: file.path, detail: "version \(version)")
    case .sealed, .zeros, .foreign: break
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
  private static func isProved(
    _ keys: FileKeys, _ file: LockedInputFile, _ siblings: ImageFiles, _ reading: HeaderReading
  ) throws(SealedDatabaseError) -> Bool {
    switch reading {
    case .newerVersion: return try isProved(keys, file, pageCount: 1)
    case .sealed, .plainSQLite: return try isProved(keys, file, pageCount: .max)
    case .zeros, .foreign:
      if try isProved(keys, file, pageCount: .max) { return true }
      return try isProved(keys, byLog: siblings.open("-wal", SQLITE_OPEN_WAL))
    }
  }

  /// Whether the page of at least one frame opens.
  private static func isProved(_ keys: FileKeys, byLog log: LockedInputFile?)
    throws(SealedDatabaseError)
    -> Bool
  {
    guard let log else { return false }
    let frame = Scratch(byteCount: LogLayout.frameByteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let frameCount = LogLayout.frameCount(inFileOf: try log.byteCount())
    for number in 0..<UInt32(clamping: frameCount) {
      let offset = LogScan.offset(ofFrame: number + 1)
      guard unsafe log.read(frame.pointer, frame.byteCount, at: offset) else { continue }
      let pageNumber = unsafe UnsafeRawPointer(frame.pointer).bigEndianWord(at: 0)
      if unsafe keys.page.open(
        frame.pointer + LogLayout.frameHeaderByteCount, number: pageNumber, into: page.pointer)
      {
        return true
      }
    }
    return false
  }

  /// Whether at least one of the first pages of the file opens.
  private static func isProved(
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
  private static func fileIDs(
    beside file: LockedInputFile, _ siblings: ImageFiles
  ) -> [[UInt8]] {
    let places = [
      (
        "-wal", SQLITE_OPEN_WAL, LogLayout.headerByteCount, LogLayout.frameHeaderByteCount,
        LogLayout.frameByteCount
      ),
      (
        "-journal", SQLITE_OPEN_MAIN_JOURNAL, JournalLayout.headerByteCount, 4,
        JournalLayout.recordByteCount
      ),
    ]
    var found: [[UInt8]] = []
    let bytes = Scratch(byteCount: LogLayout.frameHeaderByteCount + SealedHeader.byteCount)
    for (suffix, kind, first, before, step) in places {
      guard let file = try? siblings.open(suffix, kind), let end = try? file.byteCount() else {
        continue
      }
      for index in 0..<probedRecordCount {
        let offset = Int64(first) + index * Int64(step)
        let count = before + SealedHeader.byteCount
        guard offset + Int64(count) <= end, unsafe file.read(bytes.pointer, count, at: offset)
        else { break }
        guard unsafe UnsafeRawPointer(bytes.pointer).bigEndianWord(at: 0) == 1,
          case .sealed(let header) = unsafe HeaderReading(Array(bytes.bytes(before..<count)))
        else { continue }
        found.append(header.fileID)
        break
      }
    }
    return found
  }

  /// Whether connections to this database can use a log, which they write under SHARED locks.
  func mayUseLog(_ file: LockedInputFile) throws(SealedDatabaseError) -> Bool {
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
    let full = try fullPath(path)
    guard let vfs = unsafe sqlite3_vfs_find(base) else {
      throw SealedDatabaseError(.invalidArgument, path: full, detail: "there is no VFS \(base)")
    }
    let siblings = unsafe ImageFiles(path: full, vfs: vfs)
    do throws(SealedDatabaseError) {
      let file = try siblings.openDatabase()
      try file.lockShared()
      _ = try ImageIdentity(file, siblings, key: key, fileID: fileID)
      return true
    } catch
      where [.notFound, .notSealed, .wrongKey, .plainDatabase, .newerVersion].contains(error.code)
    {
      return false
    }
  }
}
