import CSQLite

/// SQLite's calls on a disk in memory: <https://sqlite.org/c3ref/vfs.html>.
enum MemoryCallbacks {
  private typealias Slot = FileSlot<MemoryFile>

  /// Makes the C structure of a VFS and registers it with SQLite, until the process ends.
  static func register(_ disk: MemoryDisk) {
    UnixVFS.registerCopy(named: disk.name, state: disk, of: MemoryFile.self) { vfs in
      vfs.xOpen = { vfs, path, memory, flags, outFlags in
        MemoryCallbacks.open(UnixVFS.state(vfs), path, memory, flags, outFlags)
      }
      vfs.xDelete = { vfs, path, _ in
        guard let path else { return SQLITE_MISUSE }
        let disk: MemoryDisk = UnixVFS.state(vfs)
        disk.willRemove(String(cString: path))
        let removed = disk.files.removeValue(forKey: String(cString: path))
        return removed == nil ? SQLITE_IOERR | (23 << 8) : SQLITE_OK  // SQLITE_IOERR_DELETE_NOENT
      }
      vfs.xAccess = { vfs, path, _, result in
        guard let path else { return SQLITE_MISUSE }
        // As on "unix", an empty file counts as absent.
        let disk: MemoryDisk = UnixVFS.state(vfs)
        result?.pointee = disk.files[String(cString: path)]?.bytes.isEmpty == false ? 1 : 0
        return SQLITE_OK
      }
    }
  }

  private static func open(
    _ disk: MemoryDisk, _ path: UnsafePointer<CChar>?,
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    memory?.pointee.pMethods = nil
    guard let memory else { return SQLITE_MISUSE }
    let name = path.map { String(cString: $0) }
    let found = name.flatMap { disk.files[$0] }
    if name != nil && found == nil && flags & SQLITE_OPEN_CREATE == 0 { return SQLITE_CANTOPEN }
    let file = found ?? MemoryFile([])
    if let name { disk.files[name] = file }
    outFlags?.pointee = flags
    UnsafeMutableRawPointer(memory).storeBytes(
      of: Slot(methods: methods, file: .passRetained(file)), as: Slot.self)
    return SQLITE_OK
  }

  // nonisolated(unsafe): written once, before the first file is opened.
  nonisolated(unsafe) private static let methods = UnsafePointer(UnixVFS.forever(makeMethods()))

  private static func file(_ memory: UnsafeMutablePointer<sqlite3_file>?) -> MemoryFile? {
    guard let memory else { return nil }
    return UnsafeMutableRawPointer(memory).load(as: Slot.self).file?.takeUnretainedValue()
  }

  private static func makeMethods() -> sqlite3_io_methods {
    var table = sqlite3_io_methods()
    table.iVersion = 2
    table.xClose = { memory in
      guard let memory else { return SQLITE_OK }
      UnsafeMutableRawPointer(memory).load(as: Slot.self).file?.release()
      memory.pointee.pMethods = nil
      return SQLITE_OK
    }
    table.xRead = { memory, target, byteCount, offset in
      guard let file = MemoryCallbacks.file(memory), let target else { return SQLITE_MISUSE }
      let isWhole = file.read(target, Int(byteCount), at: Int(offset))
      return isWhole ? SQLITE_OK : SQLITE_IOERR | (2 << 8)  // SQLITE_IOERR_SHORT_READ
    }
    table.xWrite = { memory, source, byteCount, offset in
      guard let file = MemoryCallbacks.file(memory), let source else { return SQLITE_MISUSE }
      file.write(source, Int(byteCount), at: Int(offset))
      return SQLITE_OK
    }
    table.xTruncate = { memory, byteCount in
      MemoryCallbacks.file(memory)?.resize(to: Int(byteCount))
      return SQLITE_OK
    }
    table.xSync = { _, _ in SQLITE_OK }
    table.xFileSize = { memory, target in
      target?.pointee = Int64(MemoryCallbacks.file(memory)?.bytes.count ?? 0)
      return SQLITE_OK
    }
    setQueries(&table)
    return table
  }

  private static func setQueries(_ table: inout sqlite3_io_methods) {
    table.xLock = { _, _ in SQLITE_OK }
    table.xUnlock = { _, _ in SQLITE_OK }
    table.xCheckReservedLock = { _, result in
      result?.pointee = 0
      return SQLITE_OK
    }
    table.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    table.xSectorSize = { _ in 4096 }
    table.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    table.xShmMap = { memory, region, byteCount, isExtending, target in
      target?.pointee = MemoryCallbacks.file(memory)?.region(
        Int(region), byteCount: Int(byteCount), isExtending: isExtending != 0)
      return SQLITE_OK
    }
    table.xShmLock = { _, _, _, _ in SQLITE_OK }
    table.xShmBarrier = { _ in }
    table.xShmUnmap = { memory, _ in
      MemoryCallbacks.file(memory)?.dropRegions()
      return SQLITE_OK
    }
  }
}
