internal import CSQLite
internal import Glibc

/// An open file of the underlying VFS: <https://sqlite.org/c3ref/io_methods.html>.
@safe final class BaseFile {
  let pointer: UnsafeMutablePointer<sqlite3_file>

  init(_ vfs: UnsafeMutablePointer<sqlite3_vfs>) {
    let byteCount = unsafe max(Int(vfs.pointee.szOsFile), MemoryLayout<sqlite3_file>.size)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
    unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    unsafe pointer = memory.bindMemory(to: sqlite3_file.self, capacity: 1)
  }

  deinit {
    unsafe UnsafeMutableRawPointer(pointer).deallocate()
  }

  private var methods: sqlite3_io_methods { unsafe pointer.pointee.pMethods.pointee }

  /// The most bytes that "unix" transfers in one call: os_unix.c keeps the low 17 bits of a length.
  static let maximumTransferByteCount = 0x1FFFF

  /// Reads bytes; a short read fills the rest with zeros and throws `SQLITE_IOERR_SHORT_READ`.
  func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    var done = 0
    repeat {
      let count = min(byteCount - done, Self.maximumTransferByteCount)
      do throws(ResultCode) {
        try unsafe ResultCode.require(
          methods.xRead(pointer, target + done, Int32(count), offset + Int64(done)))
      } catch {
        if error.isShortRead { unsafe memset(target + done + count, 0, byteCount - done - count) }
        throw error
      }
      done += count
    } while done < byteCount
  }

  /// Reads bytes that are in the clear: a header or a name.
  func bytes(_ byteCount: Int, at offset: Int64) throws(ResultCode) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    try unsafe read(&bytes, byteCount, at: offset)
    return bytes
  }

  func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    var done = 0
    repeat {
      let count = min(byteCount - done, Self.maximumTransferByteCount)
      try namingFullDisk {
        unsafe methods.xWrite(pointer, source + done, Int32(count), offset + Int64(done))
      }
      done += count
    } while done < byteCount
  }

  func truncate(to byteCount: Int64) throws(ResultCode) {
    try unsafe ResultCode.require(methods.xTruncate(pointer, byteCount))
  }

  /// - Parameter namesFullDisk: whether to report a full disk as `SQLITE_FULL`.
  func synchronize(_ flags: Int32, namesFullDisk: Bool = true) throws(ResultCode) {
    try namingFullDisk(namesFullDisk) { unsafe methods.xSync(pointer, flags) }
  }

  func byteCount() throws(ResultCode) -> Int64 {
    var byteCount: Int64 = 0
    try unsafe ResultCode.require(methods.xFileSize(pointer, &byteCount))
    return byteCount
  }

  func lock(_ level: Int32) throws(ResultCode) {
    try unsafe ResultCode.require(methods.xLock(pointer, level))
  }

  func unlock(_ level: Int32) throws(ResultCode) {
    try unsafe ResultCode.require(methods.xUnlock(pointer, level))
  }

  func checkReservedLock(_ result: UnsafeMutablePointer<Int32>?) -> Int32 {
    unsafe methods.xCheckReservedLock(pointer, result)
  }

  func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    unsafe methods.xFileControl(pointer, operation, argument)
  }

  /// Prevents the underlying VFS from mapping the file, which would extend it with zeros.
  ///
  /// `SQLITE_CONFIG_MMAP_SIZE` makes "unix" map every file. Other VFSes ignore the operation.
  func refuseMapping() {
    var byteCount: Int64 = 0
    _ = unsafe control(SQLITE_FCNTL_MMAP_SIZE, &byteCount)
  }

  /// Whether the underlying VFS has shared memory for the log's index.
  var hasSharedMemory: Bool { unsafe methods.iVersion >= 2 && methods.xShmMap != nil }

  /// The sector size; SQLite's default of 4096 if the file states none.
  var sectorByteCount: Int32 { unsafe methods.xSectorSize.map { unsafe $0(pointer) } ?? 4096 }

  var deviceCharacteristics: Int32 { unsafe methods.xDeviceCharacteristics(pointer) }

  /// - Parameter namesFullDisk: whether to report a full disk as `SQLITE_FULL`.
  func mapShared(
    _ region: Int32, _ byteCount: Int32, _ isExtending: Int32,
    _ target: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, namesFullDisk: Bool = true
  ) throws(ResultCode) {
    try namingFullDisk(namesFullDisk) {
      unsafe methods.xShmMap(pointer, region, byteCount, isExtending, target)
    }
  }

  func lockShared(_ offset: Int32, _ count: Int32, _ flags: Int32) throws(ResultCode) {
    try unsafe ResultCode.require(methods.xShmLock(pointer, offset, count, flags))
  }

  func barrier() { unsafe methods.xShmBarrier(pointer) }

  func unmapShared(_ isDeleting: Int32) throws(ResultCode) {
    try unsafe ResultCode.require(methods.xShmUnmap(pointer, isDeleting))
  }

  /// Reports a full disk as `SQLITE_FULL`.
  ///
  /// "unix" returns that code only for writes. It reports a full disk during a sync, or while it
  /// makes the log's index, as a general I/O error.
  private func namingFullDisk(
    _ isNamed: Bool = true, _ step: () -> Int32
  ) throws(ResultCode) {
    errno = 0
    let result = step()
    let isFull = isNamed && result & 0xFF == SQLITE_IOERR && (errno == ENOSPC || errno == EDQUOT)
    try ResultCode.require(isFull ? SQLITE_FULL : result)
  }

  /// Whether the path by which the file was opened no longer leads to it.
  var hasMoved: Bool {
    var answer: Int32 = 0
    return unsafe control(SQLITE_FCNTL_HAS_MOVED, &answer) == SQLITE_OK && answer != 0
  }

  /// Whether something lies at the path of a log, its index or a journal that is no regular file, such as a named
  /// pipe, whose opening or reading can wait for ever.
  static func isNoRegularFile(_ path: UnsafePointer<CChar>) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
  }

  /// Closes the file, if it is open.
  @discardableResult
  func close() -> Int32 {
    guard let methods = unsafe pointer.pointee.pMethods else { return SQLITE_OK }
    return unsafe methods.pointee.xClose(pointer)
  }
}

extension BaseFile {
  /// The length of a database file; 0 if the file has room for its header but no header yet.
  ///
  /// The header is the first write to a file and is synchronized before the second. After a power
  /// cut between the two, the file can have its new length and hold zeros. It is then empty.
  func sealedByteCount() throws(ResultCode) -> Int64 {
    let byteCount = try byteCount()
    guard byteCount == SealedHeader.byteCount else { return byteCount }
    let header: [UInt8]
    do throws(ResultCode) {
      header = try bytes(SealedHeader.byteCount, at: 0)
    } catch  where error.isShortRead {
      throw ResultCode(SQLITE_IOERR_READ)  // another process truncated the file
    }
    return header.allSatisfy { $0 == 0 } ? 0 : byteCount
  }
}

/// SQLite's index of the log, `NAME-shm`.
enum SharedMemoryFile {
  /// Lets the owner of a database write its index if they can write the database.
  ///
  /// SQLite creates the index with the database's current permissions and reuses an existing one.
  /// It cannot remove an index that it cannot write. An index made while the database was read-only
  /// (`chmod 400`) would therefore stay read-only. The permissions are changed by name: closing a
  /// descriptor of the file would release this process's locks on it.
  ///
  /// - Parameter path: the path of the database.
  static func openToOwner(of path: UnsafePointer<CChar>) {
    var database = stat()
    var index = stat()
    let name = unsafe String(cString: path) + "-shm"
    guard unsafe lstat(name, &index) == 0, index.st_mode & S_IFMT == S_IFREG,
      index.st_uid == geteuid(), index.st_mode & S_IRWXU != S_IRUSR | S_IWUSR,
      unsafe stat(path, &database) == 0, database.st_uid == index.st_uid,
      database.st_mode & (S_IRUSR | S_IWUSR) == S_IRUSR | S_IWUSR
    else { return }
    unsafe chmod(name, index.st_mode & 0o777 | S_IRUSR | S_IWUSR)
  }
}
