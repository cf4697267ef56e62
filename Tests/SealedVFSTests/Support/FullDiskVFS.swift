import CSQLite
import Glibc
import Synchronization

/// An SQLite VFS over "unix" whose disk has no room for the log's index.
///
/// It answers as "unix" does then: with the result code of an I/O error, and the reason in `errno`.
enum FullDiskVFS {
  private static let count = Atomic<Int>(0)

  // nonisolated(unsafe): written once; SQLite never frees "unix".
  nonisolated(unsafe) private static let unix: UnsafeMutablePointer<sqlite3_vfs>? = {
    sqlite3_initialize()
    return sqlite3_vfs_find("unix")
  }()
  /// One table for an index without room, and one for an index with room for its first region.
  nonisolated(unsafe) private static let methods = {
    let tables = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 2)
    tables.initialize(repeating: sqlite3_io_methods(), count: 2)
    return tables
  }()

  // nonisolated(unsafe): all files of "unix" have the same function, so every opening stores it.
  nonisolated(unsafe) private static var mapShared: ShmMap?
  private typealias ShmMap =
    @convention(c) (
      UnsafeMutablePointer<sqlite3_file>?, Int32, Int32, Int32,
      UnsafeMutablePointer<UnsafeMutableRawPointer?>?
    ) -> Int32

  private static func noRoom() -> Int32 {
    errno = ENOSPC
    return SQLITE_IOERR | 19 << 8  // SQLITE_IOERR_SHMSIZE
  }

  /// Registers the VFS, and returns its name.
  static func register(hasRoomForOneRegion: Bool = false) -> String {
    let name = "full-disk-\(count.add(1, ordering: .relaxed).newValue)"
    guard let unix else { return name }
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: unix.pointee)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.pAppData = UnsafeMutableRawPointer(bitPattern: hasRoomForOneRegion ? 1 : 0)
    vfs.pointee.xOpen = { vfs, path, file, flags, outFlags in
      guard let unix = FullDiskVFS.unix else { return SQLITE_ERROR }
      let result = unix.pointee.xOpen(unix, path, file, flags, outFlags)
      if result == SQLITE_OK, flags & SQLITE_OPEN_MAIN_DB != 0, let file,
        let opened = file.pointee.pMethods
      {
        let table = FullDiskVFS.methods + (vfs?.pointee.pAppData == nil ? 0 : 1)
        table.pointee = opened.pointee
        table.pointee.iVersion = 2
        table.pointee.xShmMap = { _, _, _, _, _ in FullDiskVFS.noRoom() }
        if vfs?.pointee.pAppData != nil {
          FullDiskVFS.mapShared = opened.pointee.xShmMap
          table.pointee.xShmMap = { file, region, byteCount, isExtending, target in
            region == 0
              ? FullDiskVFS.mapShared?(file, region, byteCount, isExtending, target) ?? SQLITE_ERROR
              : FullDiskVFS.noRoom()
          }
        }
        file.pointee.pMethods = UnsafePointer(table)
      }
      return result
    }
    sqlite3_vfs_register(vfs, 0)
    return name
  }
}
