import CSQLite
import FileLayer
import FileRecording
import SystemPackage

/// SQLite's calls on a recording VFS: <https://sqlite.org/c3ref/vfs.html>.
enum RecordingCallbacks {
  private typealias Slot = FileSlot<RecordedFile>

  /// Makes the C structure of a VFS and registers it with SQLite, until the process ends.
  static func register(_ recording: RecordingVFS) {
    let recorder = recording.recorder
    UnixVFS.registerCopy(named: recording.name, state: recorder, of: RecordedFile.self) { vfs in
      vfs.xOpen = { vfs, path, memory, flags, outFlags in
        RecordingCallbacks.open(UnixVFS.state(vfs), path, memory, flags, outFlags)
      }
      vfs.xDelete = { vfs, path, isSynchronizing in
        RecordingCallbacks.delete(UnixVFS.state(vfs), path, isSynchronizing)
      }
      vfs.xAccess = { vfs, path, flags, result in
        let recorder: FileRecorder = UnixVFS.state(vfs)
        if recorder.hasCrashed { return SQLITE_IOERR }
        return UnixVFS.pointer.pointee.xAccess(UnixVFS.pointer, path, flags, result)
      }
    }
  }

  private static func open(
    _ recorder: FileRecorder, _ path: UnsafePointer<CChar>?,
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    let unix = UnixVFS.pointer
    memory?.pointee.pMethods = nil
    guard let memory, !recorder.hasCrashed else { return SQLITE_IOERR }
    let filePath = path.map { FilePath(platformString: $0) } ?? RecordingVFS.unnamed
    let exists = path != nil && (try? LinuxFileSystem().status(of: filePath)) != nil
    let isCreating = flags & SQLITE_OPEN_CREATE != 0 && !exists
    if isCreating, recorder.admit(.create(filePath)) != nil { return SQLITE_CANTOPEN }
    let base = UnsafeMutableRawPointer.allocate(
      byteCount: Int(unix.pointee.szOsFile), alignment: 16)
    base.initializeMemory(as: UInt8.self, repeating: 0, count: Int(unix.pointee.szOsFile))
    let siblings = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL
    let file = RecordedFile(
      base: base.bindMemory(to: sqlite3_file.self, capacity: 1), path: filePath,
      recorder: recorder,
      owesDirectorySync: flags & SQLITE_OPEN_CREATE != 0 && flags & siblings != 0)
    let result = unix.pointee.xOpen(unix, path, file.base, flags, outFlags)
    guard result == SQLITE_OK else { return result }
    UnsafeMutableRawPointer(memory).storeBytes(
      of: Slot(methods: methods, file: .passRetained(file)), as: Slot.self)
    return SQLITE_OK
  }

  private static func delete(
    _ recorder: FileRecorder, _ path: UnsafePointer<CChar>?, _ isSynchronizing: Int32
  ) -> Int32 {
    guard let path else { return SQLITE_MISUSE }
    let filePath = FilePath(platformString: path)
    let failure = SQLITE_IOERR | (10 << 8)  // SQLITE_IOERR_DELETE
    var events: [FileEvent] = [.remove(filePath)]
    if isSynchronizing != 0 {
      events.append(.synchronizeDirectory(filePath.removingLastComponent()))
    }
    for event in events {
      if recorder.admit(event) != nil { return failure }
    }
    return UnixVFS.pointer.pointee.xDelete(UnixVFS.pointer, path, isSynchronizing)
  }

  // nonisolated(unsafe): written once, before the first file is opened.
  nonisolated(unsafe) private static let methods = UnsafePointer(UnixVFS.forever(makeMethods()))

  private static func with(
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ body: (RecordedFile) -> Int32
  ) -> Int32 {
    guard let memory, let file = UnsafeMutableRawPointer(memory).load(as: Slot.self).file else {
      return SQLITE_MISUSE
    }
    return body(file.takeUnretainedValue())
  }

  private static func makeMethods() -> sqlite3_io_methods {
    var table = sqlite3_io_methods()
    table.iVersion = 2
    setChanges(&table)
    setQueries(&table)
    return table
  }

  /// Sets the calls that change the disk.
  private static func setChanges(_ table: inout sqlite3_io_methods) {
    table.xClose = { memory in
      guard let memory, let file = UnsafeMutableRawPointer(memory).load(as: Slot.self).file else {
        return SQLITE_OK
      }
      let opened = file.takeUnretainedValue()
      let result = opened.methods.xClose(opened.base)
      memory.pointee.pMethods = nil
      file.release()
      return result
    }
    table.xWrite = { memory, source, byteCount, offset in
      RecordingCallbacks.with(memory) { $0.write(source, byteCount, offset) }
    }
    table.xTruncate = { memory, byteCount in
      RecordingCallbacks.with(memory) { file in
        file.perform(
          .truncate(file.path, byteCount: byteCount), failing: SQLITE_IOERR | (6 << 8)
        ) { file.methods.xTruncate(file.base, byteCount) }
      }
    }
    table.xSync = { memory, flags in
      RecordingCallbacks.with(memory) { $0.synchronize(flags) }
    }
  }

  /// Sets the other calls, which fail after a crash, except those that close a connection.
  private static func setQueries(_ table: inout sqlite3_io_methods) {
    table.xRead = { memory, target, byteCount, offset in
      RecordingCallbacks.with(memory) { $0.read(target, byteCount, offset) }
    }
    table.xFileSize = { memory, target in
      RecordingCallbacks.with(memory) { file in
        file.whileAlive { file.methods.xFileSize(file.base, target) }
      }
    }
    table.xLock = { memory, level in
      RecordingCallbacks.with(memory) { file in
        file.whileAlive { file.methods.xLock(file.base, level) }
      }
    }
    table.xUnlock = { memory, level in
      RecordingCallbacks.with(memory) { $0.methods.xUnlock($0.base, level) }
    }
    table.xCheckReservedLock = { memory, result in
      RecordingCallbacks.with(memory) { $0.methods.xCheckReservedLock($0.base, result) }
    }
    table.xFileControl = { memory, operation, argument in
      RecordingCallbacks.with(memory) { $0.methods.xFileControl($0.base, operation, argument) }
    }
    table.xSectorSize = { memory in
      RecordingCallbacks.with(memory) { $0.methods.xSectorSize($0.base) }
    }
    table.xDeviceCharacteristics = { memory in
      RecordingCallbacks.with(memory) { $0.methods.xDeviceCharacteristics($0.base) }
    }
    table.xShmMap = { memory, region, byteCount, isExtending, target in
      RecordingCallbacks.with(memory) { file in
        file.whileAlive { file.methods.xShmMap(file.base, region, byteCount, isExtending, target) }
      }
    }
    table.xShmLock = { memory, offset, count, flags in
      RecordingCallbacks.with(memory) { file in
        let isUnlocking = flags & SQLITE_SHM_UNLOCK != 0
        return isUnlocking || !file.recorder.hasCrashed
          ? file.methods.xShmLock(file.base, offset, count, flags) : SQLITE_IOERR
      }
    }
    table.xShmBarrier = { memory in
      _ = RecordingCallbacks.with(memory) {
        $0.methods.xShmBarrier($0.base)
        return SQLITE_OK
      }
    }
    table.xShmUnmap = { memory, isDeleting in
      RecordingCallbacks.with(memory) { $0.methods.xShmUnmap($0.base, isDeleting) }
    }
  }
}
