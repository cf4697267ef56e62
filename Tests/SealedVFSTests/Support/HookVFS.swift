import CSQLite
import Glibc
import SystemPackage

/// An SQLite VFS over "unix" that runs a test's code when SQLite checks whether a file exists.
///
/// SQLite does so between taking a lock and opening a log or journal.
final class HookVFS {
  let name: String
  private let onAccess: (FilePath) -> Void

  init(named name: String, onAccess: @escaping (FilePath) -> Void) {
    self.name = name
    self.onAccess = onAccess
    sqlite3_initialize()
    guard let unix = sqlite3_vfs_find("unix") else { return }
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: unix.pointee)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.pAppData = Unmanaged.passRetained(self).toOpaque()
    vfs.pointee.xOpen = { _, path, file, flags, outFlags in
      let unix = sqlite3_vfs_find("unix")
      return unix?.pointee.xOpen(unix, path, file, flags, outFlags) ?? SQLITE_ERROR
    }
    vfs.pointee.xAccess = { vfs, path, flags, result in
      if let path, let data = vfs?.pointee.pAppData {
        Unmanaged<HookVFS>.fromOpaque(data).takeUnretainedValue()
          .onAccess(FilePath(platformString: path))
      }
      let unix = sqlite3_vfs_find("unix")
      return unix?.pointee.xAccess(unix, path, flags, result) ?? SQLITE_ERROR
    }
    sqlite3_vfs_register(vfs, 0)
  }
}
