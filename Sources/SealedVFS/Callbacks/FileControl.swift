internal import CSQLite

/// The answers that a sealed file gives itself: <https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html>.
enum FileControl {
  /// Answers an operation, or hands it to the file and the VFS beneath.
  static func answer(
    _ file: SealedFile, _ operation: Int32, _ argument: UnsafeMutableRawPointer?
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
    let name = SealedVFS.name.utf8CString
    guard let target = unsafe argument?.assumingMemoryBound(to: UnsafeMutableRawPointer?.self),
      let copy = unsafe sqlite3_malloc(Int32(name.count))
    else { return SQLITE_NOMEM }
    unsafe name.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress {
        unsafe copy.copyMemory(from: start, byteCount: bytes.count)
      }
    }
    unsafe target.pointee = copy
    return SQLITE_OK
  }
}
