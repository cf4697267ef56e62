internal import CSQLite
internal import Glibc

/// The super-journal that the end of a rollback journal names, and whether to show it to SQLite:
/// `docs/reference/sealed-database-format.md`, "Super-journal pointer".
///
/// The pointer is in the clear, so that anyone who can write the journal can change it. SQLite
/// takes a missing super-journal for the sign of a commit, and deletes an existing one.
struct SuperJournal {
  /// The result of checking the pointer.
  enum State: Equatable {
    /// There is no pointer: the transaction changed one database.
    case notNamed
    /// The name is a valid one and no such file exists: the transaction has committed.
    case missing
    /// The file exists and lists this journal: the transaction has not committed.
    case listing
    /// The pointer is invalid for this reason, and SQLite must not see it.
    case refused(String)
  }

  /// The name as stored in the journal; empty if there is none.
  let name: [UInt8]
  let state: State

  /// The most bytes of a super-journal to read; SQLite attaches 125 databases with paths of 512
  /// bytes.
  private static let maximumByteCount: Int64 = 131_072

  /// Reads the end of a journal and looks for the file that it names.
  ///
  /// - Parameters:
  ///   - path: the journal's full path, as SQLite writes it into a super-journal.
  ///   - vfs: the underlying VFS, which SQLite asks for the super-journal.
  /// - Throws: the result code if a file cannot be read, but never the one of a short read.
  init(
    endOf journal: BaseFile, at path: [UInt8], on vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(ResultCode) {
    let limit = unsafe Int64(vfs.pointee.mxPathname)
    do throws(ResultCode) {
      name = try Self.name(atEndOf: journal, upTo: limit)
    } catch {
      throw error.isShortRead ? ResultCode(SQLITE_IOERR_READ) : error
    }
    if name.isEmpty {
      state = .notNamed
    } else if Self.isProper(name) {
      state = try unsafe Self.look(
        for: (name + [0]).map { CChar(bitPattern: $0) }, listing: path, on: vfs)
    } else {
      state = .refused("the journal names a file that cannot be its super-journal")
    }
  }

  /// The name, read as SQLite's `readSuperJournal` does: empty if there is none.
  private static func name(
    atEndOf journal: BaseFile, upTo limit: Int64
  ) throws(ResultCode) -> [UInt8] {
    let tailByteCount = 16
    let tailOffset = try journal.byteCount() - Int64(tailByteCount)
    guard tailOffset >= 0 else { return [] }
    let tail = try journal.bytes(tailByteCount, at: tailOffset)
    let count = Int64(tail.bigEndianWord(at: 0))
    guard tail[8...].elementsEqual(JournalLayout.sqliteMagic),
      count >= 1, count <= limit, count <= tailOffset
    else { return [] }
    let name = try journal.bytes(Int(count), at: tailOffset - count)
    // A power cut can lose the name and its sum together: <https://sqlite.org/forum/info/2026-07-20T18:27:00Z>.
    if name[0] == 0 { return [] }
    // SQLite adds values of C's char, which is signed on some machines.
    let sum = name.reduce(UInt32(0)) {
      $0 &+ UInt32(truncatingIfNeeded: CChar(truncatingIfNeeded: $1))
    }
    return sum == tail.bigEndianWord(at: 4) ? name : []
  }

  /// Whether a name has the form of SQLite's super-journals: a full path, then `"-mj%06X9%02X"`
  /// (vdbeaux.c).
  private static func isProper(_ name: [UInt8]) -> Bool {
    let suffix = Array(name.suffix(12))
    guard name.count > suffix.count + 1, name.first == UInt8(ascii: "/"), !name.contains(0),
      suffix.starts(with: "-mj".utf8), suffix[9] == UInt8(ascii: "9")
    else { return false }
    return (suffix[3..<9] + suffix[10..<12]).allSatisfy { digit in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit)
        || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit)
    }
  }

  /// - Parameter name: with the zero byte that ends it.
  private static func look(
    for name: [CChar], listing path: [UInt8], on vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(ResultCode) -> State {
    var status = stat()
    if unsafe lstat(name, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFREG else {
        return .refused("the super-journal that the journal names is not a regular file")
      }
    } else {
      switch errno {
      case ENOENT, ENOTDIR: break
      case EIO: throw ResultCode(SQLITE_IOERR_READ)
      case ENOMEM: throw ResultCode(SQLITE_NOMEM)
      default: return .refused("the super-journal that the journal names cannot be read")
      }
      // Another VFS can keep its files outside the file system.
      var isThere: Int32 = 0
      try unsafe ResultCode.require(
        vfs.pointee.xAccess(vfs, name, SQLITE_ACCESS_EXISTS, &isThere))
      if isThere == 0 { return .missing }
    }
    return try unsafe lists(path, in: name, on: vfs)
      ? .listing : .refused("the super-journal that the journal names does not list the journal")
  }

  /// Whether a super-journal lists a journal's path; each path ends with a zero byte.
  private static func lists(
    _ path: [UInt8], in name: [CChar], on vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(ResultCode) -> Bool {
    // Without a name, "unix" would open a temporary file.
    guard let filename = unsafe sqlite3_create_filename(name, "", "", 0, nil) else {
      throw ResultCode(SQLITE_NOMEM)
    }
    let file = unsafe BaseFile(vfs)
    defer {
      file.close()
      unsafe sqlite3_free_filename(filename)
    }
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_SUPER_JOURNAL
    try unsafe ResultCode.require(vfs.pointee.xOpen(vfs, filename, file.pointer, flags, nil))
    let byteCount = try file.byteCount()
    guard (1...maximumByteCount).contains(byteCount) else { return false }
    let contents: [UInt8]
    do throws(ResultCode) {
      contents = try file.bytes(Int(byteCount), at: 0)
    } catch  where error.isShortRead {
      return false  // truncated during the read; SQLite never truncates a super-journal
    }
    return contents.split(separator: 0, omittingEmptySubsequences: false).dropLast()
      .contains { $0.elementsEqual(path) }
  }
}
