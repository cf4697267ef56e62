import CSQLite
import Glibc
import Synchronization

/// An SQLite VFS over "unix" on whose disk there is no room for the log's index.
///
/// It answers as "unix" does then: the result code of an I/O error, the reason in `errno`.
enum FullDiskVFS {
  private static let count = Atomic<Int>(0)

  // nonisolated(unsafe): written once; SQLite never frees "unix".
  nonisolated(unsafe) private static let unix: UnsafeMutablePointer<sqlite3_vfs>? = {
    sqlite3_initialize()
    return sqlite3_vfs_find("unix")
  }()
  nonisolated(unsafe) private static var methods: UnsafeMutablePointer<sqlite3_io_methods> = {
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    table.initialize(to: sqlite3_io_methods())
    return table
  }()

  /// Registers it, and returns the name.
  static func register() -> String {
    let name = "full-disk-\(count.add(1, ordering: .relaxed).newValue)"
    guard let unix else { return name }
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: unix.pointee)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.xOpen = { _, path, file, flags, outFlags in
      guard let unix = FullDiskVFS.unix else { return SQLITE_ERROR }
      let result = unix.pointee.xOpen(unix, path, file, flags, outFlags)
      if result == SQLITE_OK, flags & SQLITE_OPEN_MAIN_DB != 0, let file,
        let opened = file.pointee.pMethods
      {
        FullDiskVFS.methods.pointee = opened.pointee
        FullDiskVFS.methods.pointee.iVersion = 2
        FullDiskVFS.methods.pointee.xShmMap = { _, _, _, _, _ in
          errno = ENOSPC
          return SQLITE_IOERR | 19 << 8  // SQLITE_IOERR_SHMSIZE
        }
        file.pointee.pMethods = UnsafePointer(FullDiskVFS.methods)
      }
      return result
    }
    sqlite3_vfs_register(vfs, 0)
    return name
  }
}
