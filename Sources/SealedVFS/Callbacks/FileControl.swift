internal import CSQLite
internal import Glibc

/// File controls that our files answer: <https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html>.
enum FileControl {
  /// A private operation: stores the address of the ``OpenFile`` at its argument.
  ///
  /// SQLite reserves the numbers below 100.
  static let identify: Int32 = 0x5EA1ED

  /// Answers an operation, or passes it to the file and the underlying VFS.
  static func answer(
    _ file: OpenFile, _ operation: Int32, _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    switch operation {
    case SQLITE_FCNTL_VFSNAME:
      // The underlying VFS would give its own name, and hide that this file is sealed.
      return unsafe answerName(argument)
    case identify:
      unsafe argument?.storeBytes(
        of: Unmanaged.passUnretained(file).toOpaque(), as: UnsafeMutableRawPointer.self)
      return SQLITE_OK
    case SQLITE_FCNTL_MMAP_SIZE:
      unsafe argument?.storeBytes(of: 0, as: Int64.self)
      return SQLITE_OK
    case SQLITE_FCNTL_POWERSAFE_OVERWRITE:
      unsafe argument?.storeBytes(of: 1, as: Int32.self)
      return SQLITE_OK
    case SQLITE_FCNTL_SIZE_HINT:
      return SQLITE_OK  // not passed on: "unix" could extend a file before its header is there
    case SQLITE_FCNTL_CHUNK_SIZE, SQLITE_FCNTL_BEGIN_ATOMIC_WRITE:
      return SQLITE_NOTFOUND  // no holes at the end, and no batches that bypass the cipher
    case SQLITE_FCNTL_PRAGMA:
      guard let file = file as? SealedFile, let pragma = unsafe Pragma(argument) else { break }
      if let result = refuseKey(pragma, of: file) { return result }
      if pragma.changesPageSize { return SQLITE_OK }  // ignored: sealed pages have 4096 bytes
    default: break
    }
    return unsafe file.control(operation, argument)
  }

  /// The argument of `SQLITE_FCNTL_PRAGMA`.
  @safe private struct Pragma {
    let name: String
    let value: String?
    /// Receives the error message.
    let message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

    init?(_ argument: UnsafeMutableRawPointer?) {
      let words = unsafe argument?.assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self)
      guard let words = unsafe words, let name = unsafe words[1] else { return nil }
      self.name = unsafe String(cString: name).lowercased()
      value = unsafe words[2].map { unsafe String(cString: $0) }
      unsafe message = words
    }

    /// Whether the next `VACUUM` would change the page size.
    var changesPageSize: Bool {
      guard name == "page_size", let value else { return false }
      return Int(value) != PageLayout.byteCount
    }
  }

  /// The device characteristics that also hold for sealed pages, chosen from an allow-list.
  ///
  /// Power-safe overwrite is always claimed, as SQLite does on Linux. Without it SQLite would split
  /// page writes.
  static func deviceCharacteristics(of base: BaseFile) -> Int32 {
    SQLITE_IOCAP_POWERSAFE_OVERWRITE
      | base.deviceCharacteristics & SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN
  }

  private static func answerName(_ argument: UnsafeMutableRawPointer?) -> Int32 {
    guard let target = unsafe argument?.assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self),
      let copy = unsafe copy(of: SealedVFS.name)
    else { return SQLITE_NOMEM }
    unsafe target.pointee = copy
    return SQLITE_OK
  }

  /// Refuses `PRAGMA key` and similar pragmas, which SQLite would silently ignore.
  ///
  /// - Returns: nil for every other pragma.
  private static func refuseKey(_ pragma: Pragma, of file: SealedFile) -> Int32? {
    guard keyPragmas.contains(pragma.name) else { return nil }
    let fault = SealedDatabaseError(.keyInText, path: file.registered.path)
    file.record(fault, SQLITE_ERROR)
    unsafe pragma.message.pointee = copy(of: fault.description)
    return SQLITE_ERROR
  }

  private static let keyPragmas: Set<String> = [
    "key", "rekey", "hexkey", "hexrekey", "textkey", "textrekey",
  ]

  /// A string in memory that SQLite frees.
  private static func copy(of text: String) -> UnsafeMutablePointer<CChar>? {
    let copy = unsafe sqlite3_malloc(Int32(text.utf8.count) + 1)
    return unsafe copy.map { unsafe strcpy($0.assumingMemoryBound(to: CChar.self), text) }
  }
}
