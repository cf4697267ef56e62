internal import CSQLite
internal import Glibc

/// SQLite's calls on the VFS itself: <https://sqlite.org/c3ref/vfs.html>.
///
/// All calls go to the underlying VFS, "unix", except the opening of registered databases, their
/// logs and journals, and temporary files. SQLite calls other open files directly.
enum VFSCallbacks {
  /// Makes the VFS, ready to be registered; it lives as long as the process.
  ///
  /// - Parameter base: "unix", or a VFS with its clock, randomness and loader, which do not use the
  ///   structure.
  static func makeVFS(
    named name: String = SealedVFS.name, over base: UnsafeMutablePointer<sqlite3_vfs>
  ) -> UnsafeMutablePointer<sqlite3_vfs> {
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe vfs.initialize(to: base.pointee)
    unsafe vfs.pointee.iVersion = 2
    unsafe vfs.pointee.pNext = nil
    unsafe vfs.pointee.szOsFile = max(
      base.pointee.szOsFile, Int32(MemoryLayout<FileSlot<OpenFile>>.size))
    unsafe vfs.pointee.zName = UnsafePointer(strdup(name))
    unsafe vfs.pointee.pAppData = UnsafeMutableRawPointer(base)
    unsafe setFileCalls(&vfs.pointee)
    return unsafe vfs
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
}
