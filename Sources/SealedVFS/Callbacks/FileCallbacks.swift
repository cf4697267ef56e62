internal import CSQLite

/// SQLite's calls on a file that this VFS opened: <https://sqlite.org/c3ref/io_methods.html>.
///
/// SQLite's memory for a file holds the method table and a reference to the ``OpenFile``, which
/// xClose releases. Version 2 of the table has no memory mapping.
enum FileCallbacks {
  /// The method tables: version 2, and version 1 if the underlying VFS has no shared memory.
  // nonisolated(unsafe): written once, before the first file is opened.
  nonisolated(unsafe) private static let methods = unsafe FileSlot<OpenFile>.table(makeMethods(2))
  nonisolated(unsafe) private static let methodsWithoutIndex = unsafe FileSlot<OpenFile>.table(
    makeMethods(1))

  /// Stores an open file in SQLite's memory.
  static func install(_ file: OpenFile, in memory: UnsafeMutablePointer<sqlite3_file>) {
    let table = unsafe file.base.hasSharedMemory ? methods : methodsWithoutIndex
    unsafe FileSlot(methods: table, file: .passRetained(file)).store(in: memory)
  }

  /// Our file in SQLite's memory, or beneath a VFS that is layered above ours; nil if it is not ours.
  ///
  /// SQLite's "vfsstat" and "cksumvfs" are such VFSes. They pass file controls to the lower file.
  static func file(in memory: UnsafeMutablePointer<sqlite3_file>?) -> OpenFile? {
    guard let memory = unsafe memory, let found = unsafe memory.pointee.pMethods else { return nil }
    if unsafe found == methods || found == methodsWithoutIndex {
      return unsafe FileSlot.file(in: memory)?.takeUnretainedValue()
    }
    var file: UnsafeMutableRawPointer?
    guard unsafe found.pointee.xFileControl(memory, FileControl.identify, &file) == SQLITE_OK,
      let file = unsafe file
    else { return nil }
    return unsafe Unmanaged<OpenFile>.fromOpaque(file).takeUnretainedValue()
  }

  /// Passes the file to a call without changing its reference count.
  @inline(__always)
  private static func with(
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ body: (OpenFile) -> Int32
  ) -> Int32 {
    guard let file = unsafe FileSlot<OpenFile>.file(in: memory) else { return SQLITE_MISUSE }
    return unsafe file._withUnsafeGuaranteedRef(body)
  }

  /// Passes the file to a call that throws the result code of a failure.
  @inline(__always)
  private static func attempt(
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ body: (OpenFile) throws(ResultCode) -> Void
  ) -> Int32 {
    unsafe with(memory) { file in
      do throws(ResultCode) {
        try body(file)
        return SQLITE_OK
      } catch {
        return error.value
      }
    }
  }

  private static func makeMethods(_ version: Int32) -> sqlite3_io_methods {
    var table = sqlite3_io_methods()
    table.iVersion = version
    unsafe table.xClose = { memory in
      guard let file = unsafe FileSlot<OpenFile>.file(in: memory) else { return SQLITE_OK }
      let result = unsafe file.takeUnretainedValue().base.close()
      unsafe memory?.pointee.pMethods = nil
      unsafe file.release()
      return result
    }
    unsafe table.xRead = { memory, target, byteCount, offset in
      guard let target = unsafe target else { return SQLITE_MISUSE }
      return unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try unsafe file.read(target, Int(byteCount), at: offset)
      }
    }
    unsafe table.xWrite = { memory, source, byteCount, offset in
      guard let source = unsafe source else { return SQLITE_MISUSE }
      return unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try unsafe file.write(source, Int(byteCount), at: offset)
      }
    }
    unsafe table.xTruncate = { memory, byteCount in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try file.truncate(to: byteCount)
      }
    }
    unsafe table.xSync = { memory, flags in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try file.synchronize(flags)
      }
    }
    unsafe table.xFileSize = { memory, target in
      guard let target = unsafe target else { return SQLITE_MISUSE }
      return unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        unsafe target.pointee = try file.byteCount()
      }
    }
    unsafe table.xLock = { memory, level in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in try file.lock(level) }
    }
    unsafe table.xUnlock = { memory, level in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in try file.unlock(level) }
    }
    unsafe table.xCheckReservedLock = { memory, result in
      unsafe FileCallbacks.with(memory) { unsafe $0.base.checkReservedLock(result) }
    }
    unsafe table.xFileControl = { memory, operation, argument in
      unsafe FileCallbacks.with(memory) { unsafe FileControl.answer($0, operation, argument) }
    }
    unsafe table.xSectorSize = { memory in
      unsafe FileCallbacks.with(memory) { $0.base.sectorByteCount }
    }
    unsafe table.xDeviceCharacteristics = { memory in
      unsafe FileCallbacks.with(memory) { FileControl.deviceCharacteristics(of: $0.base) }
    }
    unsafe table.xShmMap = { memory, region, byteCount, isExtending, target in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try unsafe file.mapShared(region, byteCount, isExtending, target)
      }
    }
    unsafe table.xShmLock = { memory, offset, count, flags in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try file.lockShared(offset, count, flags)
      }
    }
    unsafe table.xShmBarrier = { memory in
      _ = unsafe FileCallbacks.attempt(memory) { $0.base.barrier() }
    }
    unsafe table.xShmUnmap = { memory, isDeleting in
      unsafe FileCallbacks.attempt(memory) { (file) throws(ResultCode) in
        try file.base.unmapShared(isDeleting)
      }
    }
    return table
  }
}

/// The contents of SQLite's memory for a file: its method table, and the object that answers.
@unsafe struct FileSlot<File: AnyObject> {
  let methods: UnsafePointer<sqlite3_io_methods>
  /// Retained until xClose.
  let file: Unmanaged<File>

  func store(in memory: UnsafeMutablePointer<sqlite3_file>) {
    unsafe UnsafeMutableRawPointer(memory).storeBytes(of: self, as: FileSlot.self)
  }

  /// The object in SQLite's memory; nil after xClose, and if the file was not opened.
  static func file(in memory: UnsafeMutablePointer<sqlite3_file>?) -> Unmanaged<File>? {
    guard let memory = unsafe memory, unsafe memory.pointee.pMethods != nil else { return nil }
    return unsafe UnsafeMutableRawPointer(memory).load(as: FileSlot.self).file
  }

  /// A method table that is never freed.
  static func table(_ methods: sqlite3_io_methods) -> UnsafePointer<sqlite3_io_methods> {
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe table.initialize(to: methods)
    return unsafe UnsafePointer(table)
  }
}
