internal import CSQLite

/// The answers that our files give themselves: <https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html>.
enum FileControl {
  /// Answers an operation, or hands it to the file and the VFS beneath.
  static func answer(
    _ file: OpenFile, _ operation: Int32, _ argument: UnsafeMutableRawPointer?
  ) -> Int32 {
    switch operation {
    case SQLITE_FCNTL_VFSNAME:
      // The VFS beneath would say its own name, and nobody could tell that we are there.
      return unsafe answerName(argument)
    case SQLITE_FCNTL_MMAP_SIZE:
      unsafe argument?.storeBytes(of: 0, as: Int64.self)
      return SQLITE_OK
    case SQLITE_FCNTL_POWERSAFE_OVERWRITE:
      unsafe argument?.storeBytes(of: 1, as: Int32.self)
      return SQLITE_OK
    case SQLITE_FCNTL_CHUNK_SIZE, SQLITE_FCNTL_BEGIN_ATOMIC_WRITE:
      return SQLITE_NOTFOUND  // neither holes at the end nor batches that bypass us
    case SQLITE_FCNTL_PRAGMA:
      return unsafe refuseKey(argument, of: file) ?? file.control(operation, argument)
    default:
      return unsafe file.control(operation, argument)
    }
  }

  /// By allow-list: what the device promises of bytes need not hold of sealed pages.
  ///
  /// Safe overwrite is always claimed, as SQLite does on Linux; without it page writes would be split.
  static func deviceCharacteristics(of base: BaseFile) -> Int32 {
    SQLITE_IOCAP_POWERSAFE_OVERWRITE
      | base.deviceCharacteristics & SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN
  }

  private static func answerName(_ argument: UnsafeMutableRawPointer?) -> Int32 {
    guard let target = unsafe argument?.assumingMemoryBound(to: UnsafeMutableRawPointer?.self),
      let copy = unsafe copy(of: SealedVFS.name)
    else { return SQLITE_NOMEM }
    unsafe target.pointee = copy
    return SQLITE_OK
  }

  /// Says no to `PRAGMA key` and its like, which SQLite would ignore without a word.
  ///
  /// - Returns: nil for every other pragma.
  private static func refuseKey(_ argument: UnsafeMutableRawPointer?, of file: OpenFile) -> Int32? {
    let words = unsafe argument?.assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self)
    guard let file = file as? SealedFile, let words = unsafe words, let name = unsafe words[1],
      unsafe keyPragmas.contains(String(cString: name).lowercased())
    else { return nil }
    let fault = SealedFileError(.keyInText, path: file.registered.path)
    file.record(fault, SQLITE_ERROR)
    unsafe words[0] = copy(of: fault.descriptionWithHint)?.assumingMemoryBound(to: CChar.self)
    return SQLITE_ERROR
  }

  private static let keyPragmas: Set<String> = [
    "key", "rekey", "hexkey", "hexrekey", "textkey", "textrekey",
  ]

  /// A string in memory that SQLite frees.
  private static func copy(of text: String) -> UnsafeMutableRawPointer? {
    let text = text.utf8CString
    guard let copy = unsafe sqlite3_malloc(Int32(text.count)) else { return nil }
    unsafe text.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress {
        unsafe copy.copyMemory(from: start, byteCount: bytes.count)
      }
    }
    return unsafe copy
  }
}
