import CSQLite
import Glibc

/// What SQLite reads of an open file, and the file.
struct FileSlot<File: AnyObject> {
  var methods: UnsafePointer<sqlite3_io_methods>?
  var file: Unmanaged<File>?
}

/// The VFS "unix", and changed copies of it.
enum UnixVFS {
  // nonisolated(unsafe): found once, and SQLite never frees "unix".
  nonisolated(unsafe) static let pointer: UnsafeMutablePointer<sqlite3_vfs> = {
    guard sqlite3_initialize() == SQLITE_OK, let vfs = sqlite3_vfs_find("unix") else {
      preconditionFailure("SQLite has no VFS \"unix\"")
    }
    return vfs
  }()

  /// Registers a copy with some functions replaced, until the process ends.
  ///
  /// The other functions, as those for time and randomness, need no state.
  static func registerCopy<State: AnyObject, File: AnyObject>(
    named name: String, state: State, of file: File.Type,
    _ replaceFunctions: (inout sqlite3_vfs) -> Void
  ) {
    var vfs = pointer.pointee
    vfs.iVersion = 2
    vfs.pNext = nil
    vfs.szOsFile = Int32(MemoryLayout<FileSlot<File>>.size)
    vfs.zName = UnsafePointer(strdup(name))
    vfs.pAppData = Unmanaged.passRetained(state).toOpaque()
    replaceFunctions(&vfs)
    sqlite3_vfs_register(forever(vfs), 0)
  }

  /// The state of a copy.
  static func state<State: AnyObject>(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> State {
    guard let data = vfs?.pointee.pAppData else {
      preconditionFailure("SQLite called a VFS without its own structure")
    }
    return Unmanaged<State>.fromOpaque(data).takeUnretainedValue()
  }

  /// A C structure that is never freed.
  static func forever<Structure>(_ structure: Structure) -> UnsafeMutablePointer<Structure> {
    let memory = UnsafeMutablePointer<Structure>.allocate(capacity: 1)
    memory.initialize(to: structure)
    return memory
  }
}
