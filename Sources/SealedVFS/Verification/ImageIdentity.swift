internal import CSQLite
internal import VaultCrypto

/// Whose database a file is, also where its first 16 bytes were damaged.
///
/// The file id stands in each copy of page 1, and whether it and a key are right, any page of the
/// database proves: so a damaged header costs nothing but its own bytes.
struct ImageIdentity {
  let keys: FileKeys
  let isHeaderDamaged: Bool

  private static let probedPageCount: UInt32 = 32
  private static let probedRecordCount: Int64 = 4096

  init(
    _ file: HeldFile, _ siblings: ImageFiles, key: borrowing SecretBytes
  ) throws(SealedFileError) {
    let start = Scratch(byteCount: SealedHeader.byteCount)
    let byteCount = try file.byteCount()
    if byteCount >= SealedHeader.byteCount,
      unsafe !file.read(start.pointer, SealedHeader.byteCount, at: 0)
    {
      throw SealedFileError(.ioFailed, path: file.path)
    }
    let bytes = unsafe Array(start.bytes(0..<SealedHeader.byteCount))
    let reading = HeaderReading(bytes)
    let obstacle: SealedFileError.Code
    switch reading {
    case .plainSQLite: throw SealedFileError(.plainDatabase, path: file.path)
    case .newerVersion(let version):
      throw SealedFileError(.newerVersion, path: file.path, detail: "version \(version)")
    case .sealed(let header):
      if header.matches(key: key), let keys = try? FileKeys(header: header, key: key) {
        (self.keys, isHeaderDamaged) = (keys, false)
        return
      }
      obstacle = .wrongKey
    case .zeros, .foreign: obstacle = .notSealed
    }
    for fileID in [Array(bytes[8...])] + Self.fileIDs(beside: file, siblings) {
      if let header = try? SealedHeader(fileID: fileID, key: key),
        let keys = try? FileKeys(header: header, key: key), Self.isProved(keys, by: file, byteCount)
      {
        (self.keys, isHeaderDamaged) = (keys, true)
        return
      }
    }
    throw SealedFileError(
      obstacle, path: file.path,
      detail: "or its first 16 bytes are damaged; no page opens under this key")
  }

  /// Whether some page opens.
  private static func isProved(_ keys: FileKeys, by file: HeldFile, _ byteCount: Int64) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    let pageCount = UInt32(truncatingIfNeeded: byteCount / Int64(PageLayout.byteCount))
    for number in 1..<(min(pageCount, probedPageCount) + 1) {
      let offset = PageLayout.offset(ofPage: number)
      if unsafe file.read(sealed.pointer, PageLayout.byteCount, at: offset)
        && keys.page.open(sealed.pointer, number: number, into: page.pointer)
      {
        return true
      }
    }
    return false
  }

  /// The file ids in copies of page 1 that lie in log and journal.
  private static func fileIDs(
    beside file: HeldFile, _ siblings: ImageFiles
  ) -> [[UInt8]] {
    let places = [
      ("-wal", SQLITE_OPEN_WAL, LogLayout.headerByteCount, LogLayout.frameHeaderByteCount, 4120),
      ("-journal", SQLITE_OPEN_MAIN_JOURNAL, JournalLayout.headerByteCount, 4, 4104),
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

  /// Whether connections to this database may use a log, which they write to under SHARED locks.
  func mayUseLog(_ file: HeldFile) throws(SealedFileError) -> Bool {
    let sealed = Scratch(byteCount: PageLayout.byteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    guard try file.byteCount() >= PageLayout.byteCount,
      unsafe file.read(sealed.pointer, PageLayout.byteCount, at: 0),
      unsafe keys.page.open(sealed.pointer, number: 1, into: page.pointer)
    else { return true }
    return unsafe page.bytes(18..<20).contains(2)
  }
}
