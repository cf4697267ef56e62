import CSQLite
import FaultVFS
import SealedVFS

/// A temporary file of the sealed VFS, opened and called as SQLite does.
final class TemporaryHandle {
  private let memory: UnsafeMutablePointer<sqlite3_file>

  /// - Parameter path: nil for a file without a name, as SQLite opens them. A test that changes the
  ///   file on disk passes a path.
  init(_ path: String? = nil) throws {
    try SealedVFS.install()
    let vfs = sqlite3_vfs_find("sealed")
    let byteCount = Int(vfs?.pointee.szOsFile ?? 0)
    let raw = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
    raw.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    memory = raw.bindMemory(to: sqlite3_file.self, capacity: 1)
    var flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_TRANSIENT_DB
    if path == nil { flags |= SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_DELETEONCLOSE }
    let name = path.flatMap { sqlite3_create_filename($0, "", "", 0, nil) }
    let result = vfs?.pointee.xOpen(vfs, name, memory, flags, nil) ?? SQLITE_ERROR
    nameOnDisk = name
    guard result == SQLITE_OK else { throw SQLFailure(code: result, message: "open") }
  }

  /// SQLite's files keep a pointer to their name.
  private let nameOnDisk: sqlite3_filename?

  deinit {
    _ = memory.pointee.pMethods?.pointee.xClose(memory)
    UnsafeMutableRawPointer(memory).deallocate()
    if let nameOnDisk { sqlite3_free_filename(nameOnDisk) }
  }

  private var methods: sqlite3_io_methods {
    get throws {
      guard let methods = memory.pointee.pMethods else {
        throw SQLFailure(code: SQLITE_MISUSE, message: "closed")
      }
      return methods.pointee
    }
  }

  /// The bytes, with zeros after the end of the file, and SQLite's result code.
  func read(_ byteCount: Int, at offset: Int) throws -> (bytes: [UInt8], code: Int32) {
    var bytes = [UInt8](repeating: 0xEE, count: byteCount)
    let code = try methods.xRead(memory, &bytes, Int32(byteCount), Int64(offset))
    return (bytes, code)
  }

  func write(_ bytes: [UInt8], at offset: Int) throws -> Int32 {
    try methods.xWrite(memory, bytes, Int32(bytes.count), Int64(offset))
  }

  func truncate(to byteCount: Int) throws -> Int32 {
    try methods.xTruncate(memory, Int64(byteCount))
  }

  var byteCount: Int {
    get throws {
      var count: Int64 = -1
      _ = try methods.xFileSize(memory, &count)
      return Int(count)
    }
  }
}
