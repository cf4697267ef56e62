internal import CSQLite

/// SQLite's calls on the VFS itself: <https://sqlite.org/c3ref/vfs.html>.
///
/// All calls go to the underlying VFS, "unix", except the opening of registered databases, their
/// logs and journals, and temporary files. SQLite calls other open files directly.
enum VFSCallbacks {
  /// Makes the VFS, ready to be registered; it lives as long as the process.
  static func makeVFS(
    named name: String = SealedVFS.name, over base: UnsafeMutablePointer<sqlite3_vfs>
  ) -> UnsafeMutablePointer<sqlite3_vfs> {
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe vfs.initialize(to: sqlite3_vfs())
    unsafe vfs.pointee.iVersion = 2
    unsafe vfs.pointee.szOsFile = max(
      base.pointee.szOsFile, Int32(MemoryLayout<FileCallbacks.Slot>.size))
    unsafe vfs.pointee.mxPathname = base.pointee.mxPathname
    unsafe vfs.pointee.zName = UnsafePointer(copy(of: name))
    unsafe vfs.pointee.pAppData = UnsafeMutableRawPointer(base)
    unsafe setFileCalls(&vfs.pointee)
    unsafe setSystemCalls(&vfs.pointee)
    return unsafe vfs
  }

  private static func copy(of name: String) -> UnsafeMutablePointer<CChar> {
    let bytes = name.utf8CString
    let memory = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    for (index, byte) in bytes.enumerated() { unsafe memory[index] = byte }
    return unsafe memory
  }

  /// The underlying VFS.
  private static func base(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?
  ) -> UnsafeMutablePointer<sqlite3_vfs> {
    guard let data = unsafe vfs?.pointee.pAppData else {
      preconditionFailure("SQLite called the sealed VFS without its own structure")
    }
    return unsafe data.assumingMemoryBound(to: sqlite3_vfs.self)
  }

  /// The underlying VFS for one path; a registration can name another than "unix".
  private static func base(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, for path: UnsafePointer<CChar>?
  ) -> UnsafeMutablePointer<sqlite3_vfs> {
    let usual = unsafe base(vfs)
    guard let path = unsafe path, let found = unsafe KeyRegistry.find(databaseOrSibling: path),
      // SQLite allocates the memory of its files by the size that our own VFS states.
      unsafe found.base.pointee.szOsFile <= usual.pointee.szOsFile
    else { return unsafe usual }
    return unsafe found.base
  }

  private static func setFileCalls(_ vfs: inout sqlite3_vfs) {
    unsafe vfs.xOpen = { vfs, path, memory, flags, outFlags in
      guard let memory = unsafe memory else { return SQLITE_MISUSE }
      unsafe memory.pointee.pMethods = nil
      let usual = unsafe VFSCallbacks.base(vfs)
      do throws(ResultCode) {
        if try unsafe SealedOpening.open(path, memory, flags, outFlags, over: usual) {
          return SQLITE_OK
        }
      } catch {
        return error.value
      }
      let base = unsafe VFSCallbacks.base(vfs, for: path)
      return unsafe base.pointee.xOpen(base, path, memory, flags, outFlags)
    }
    unsafe vfs.xDelete = { vfs, path, isSynchronizing in
      let base = unsafe VFSCallbacks.base(vfs, for: path)
      return unsafe base.pointee.xDelete(base, path, isSynchronizing)
    }
    unsafe vfs.xAccess = { vfs, path, flags, result in
      let base = unsafe VFSCallbacks.base(vfs, for: path)
      return unsafe base.pointee.xAccess(base, path, flags, result)
    }
    unsafe vfs.xFullPathname = { vfs, path, byteCount, target in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xFullPathname(base, path, byteCount, target)
    }
  }

  private static func setSystemCalls(_ vfs: inout sqlite3_vfs) {
    unsafe vfs.xDlOpen = { vfs, path in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xDlOpen(base, path)
    }
    unsafe vfs.xDlError = { vfs, byteCount, target in
      let base = unsafe VFSCallbacks.base(vfs)
      unsafe base.pointee.xDlError(base, byteCount, target)
    }
    unsafe vfs.xDlSym = { vfs, handle, symbol in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xDlSym(base, handle, symbol)
    }
    unsafe vfs.xDlClose = { vfs, handle in
      let base = unsafe VFSCallbacks.base(vfs)
      unsafe base.pointee.xDlClose(base, handle)
    }
    unsafe vfs.xRandomness = { vfs, byteCount, target in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xRandomness(base, byteCount, target)
    }
    unsafe vfs.xSleep = { vfs, microseconds in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xSleep(base, microseconds)
    }
    unsafe vfs.xCurrentTime = { vfs, time in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xCurrentTime(base, time)
    }
    unsafe vfs.xGetLastError = { vfs, byteCount, target in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xGetLastError(base, byteCount, target)
    }
    unsafe vfs.xCurrentTimeInt64 = { vfs, time in
      let base = unsafe VFSCallbacks.base(vfs)
      return unsafe base.pointee.xCurrentTimeInt64(base, time)
    }
  }
}
