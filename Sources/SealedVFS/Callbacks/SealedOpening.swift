internal import CSQLite
internal import Glibc
internal import VaultCrypto

/// Opens the files of registered databases, and every temporary file.
enum SealedOpening {
  /// The URI parameter that marks the target of a `VACUUM INTO`.
  ///
  /// SQLite sets the target's page size itself, and fails if the file shows a header already.
  static let vacuumTargetParameter = "sealed_vacuum_into"

  /// Opens a database that is registered, a log or journal of one, or a temporary file.
  ///
  /// - Parameter usual: the underlying VFS, unless a registration names another.
  /// - Returns: false for any other file: the underlying VFS opens it, in the same memory.
  static func open(
    _ path: UnsafePointer<CChar>?, _ memory: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?, over usual: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(ResultCode) -> Bool {
    if flags & TemporaryFile.openFlags != 0 {
      // SQLite does not say whose rows it will hold, so those of plain databases are sealed, too.
      let file = unsafe TemporaryFile(base: BaseFile(usual))
      return try unsafe open(file, path, memory, flags, outFlags, over: usual)
    }
    guard let path = unsafe path else { return false }
    let file: SealedFile
    if flags & SQLITE_OPEN_MAIN_DB != 0 {
      let registered: RegisteredKey
      do throws(SealedDatabaseError) {
        guard let found = try unsafe URIKey.find(database: path) else { return false }
        registered = found
      } catch {
        FaultLog.record(error)
        throw ResultCode(SQLITE_AUTH)
      }
      file = try unsafe ResultCode.translatingCryptoErrors(mainFile(of: registered, path))
    } else if flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL) != 0 {
      let database = unsafe FileCallbacks.file(in: sqlite3_database_file_object(path))
      // SQLite would write the log of another format in the clear.
      if let other = database as? SQLCipherFile { throw other.fail(.notClosed, SQLITE_CANTOPEN) }
      guard let main = database as? MainFile else {
        try unsafe requirePlainDatabase(of: path)
        return false
      }
      if main.base.hasMoved { throw main.fail(.fileReplaced, SQLITE_READONLY_DBMOVED) }
      try main.learnIdentity()
      if unsafe BaseFile.isNoRegularFile(path) {
        throw main.record(
          unsafe .notRegularFile(String(cString: path), of: main.registered.path), SQLITE_CANTOPEN)
      }
      let base = unsafe BaseFile(main.registered.base)
      file =
        flags & SQLITE_OPEN_WAL != 0
        ? LogFile(base: base, main: main)
        : unsafe JournalFile(
          base: base, main: main,
          path: Array(UnsafeRawBufferPointer(start: path, count: strlen(path))))
    } else {
      return false  // a super-journal, which stays in the clear, or a journal named in one
    }
    return try unsafe open(file, path, memory, flags, outFlags, over: file.registered.base)
  }

  private static func open(
    _ file: OpenFile, _ path: UnsafePointer<CChar>?,
    _ memory: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?, over vfs: UnsafeMutablePointer<sqlite3_vfs>
  ) throws(ResultCode) -> Bool {
    let result = unsafe vfs.pointee.xOpen(vfs, path, file.base.pointer, flags, outFlags)
    guard result == SQLITE_OK else {
      file.base.close()
      throw ResultCode(result)
    }
    file.base.refuseMapping()
    if flags & SQLITE_OPEN_MAIN_DB != 0, flags & SQLITE_OPEN_READWRITE != 0, let path = unsafe path
    {
      unsafe SharedMemoryFile.openToOwner(of: path)
    }
    if let other = file as? SQLCipherFile {
      do throws(ResultCode) {
        try other.determineWhetherNew()
      } catch {
        other.base.close()
        throw error
      }
      if !other.isNew {
        unsafe outFlags?.pointee &= ~SQLITE_OPEN_READWRITE
        unsafe outFlags?.pointee |= SQLITE_OPEN_READONLY
      }
    }
    unsafe FileCallbacks.install(file, in: memory)
    return true
  }

  /// Throws `SQLITE_CANTOPEN` if the log or journal belongs to a sealed database.
  ///
  /// A VFS above ours that does not pass file controls on hides our file. Without this check, the log of a sealed
  /// database would be written in the clear.
  private static func requirePlainDatabase(of path: UnsafePointer<CChar>) throws(ResultCode) {
    guard let database = unsafe sqlite3_filename_database(path) else { return }
    let name = unsafe String(cString: database)
    let isHidden = KeyRegistry.isOpen(name)
    var isSealed = isHidden
    if !isSealed, let file = unsafe sqlite3_database_file_object(path),
      let methods = unsafe file.pointee.pMethods
    {
      var start = [UInt8](repeating: 0, count: SealedHeader.byteCount)
      let result = unsafe methods.pointee.xRead(file, &start, Int32(start.count), 0)
      if result != SQLITE_IOERR_SHORT_READ { try ResultCode.require(result) }
      isSealed = start.starts(with: SealedHeader.magic)
    }
    guard isSealed else { return }
    let fault = SealedDatabaseError(isHidden ? .hiddenByVFS : .keyNotNamed, path: name)
    unsafe KeyRegistry.find(database: database)?.faults.record(fault, result: SQLITE_CANTOPEN)
    FaultLog.record(fault)
    throw ResultCode(SQLITE_CANTOPEN)
  }

  /// The database's own file, by its format.
  private static func mainFile(
    of registered: RegisteredKey, _ path: UnsafePointer<CChar>
  ) throws(CryptoError) -> PagedFile {
    let base = unsafe BaseFile(registered.base)
    if registered.format == .sqlcipher4 {
      return try SQLCipherFile(base: base, registered: registered)
    }
    return try MainFile(
      base: base, registered: registered,
      isVacuumTarget: unsafe sqlite3_uri_boolean(path, vacuumTargetParameter, 0) != 0)
  }
}
