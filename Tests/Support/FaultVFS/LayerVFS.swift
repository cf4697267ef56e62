import CSQLite
import Glibc
import Synchronization

/// A VFS that forwards each call to another one: to "unix" below the sealed VFS, or to "sealed" itself.
///
/// It can fail one call, and records the longest read or write. It stays registered until the
/// process ends. It is not thread-safe.
package final class LayerVFS {
  /// The name by which SQLite finds the VFS; each one has a different name.
  package let name: String
  let base: UnsafeMutablePointer<sqlite3_vfs>
  let passesFileControls: Bool
  let hasSharedMemory: Bool

  /// The call to fail, counted from 0, and the result code; nil lets all calls through.
  package var failure: (call: Int, code: FailureCode)?
  /// The calls that could have failed, in their order.
  package private(set) var calls: [String] = []
  package var callCount: Int { calls.count }
  /// The name of the call that failed; nil if none has.
  package private(set) var failedCall: String?
  /// The most bytes that a call read or wrote.
  package fileprivate(set) var longestTransfer: Int32 = 0

  /// The operations of all file controls so far.
  package fileprivate(set) var fileControls: Set<Int32> = []

  /// The result of the failing call.
  package enum FailureCode: Sendable, CaseIterable {
    /// The code by which "unix" reports a failed system call.
    case inputOutput
    case outOfMemory
  }

  private static let count = Atomic<Int>(0)

  package init(
    over base: String = "unix", passesFileControls: Bool = true, hasSharedMemory: Bool = true
  ) {
    name = "layer-\(Self.count.add(1, ordering: .relaxed).newValue)"
    guard sqlite3_initialize() == SQLITE_OK, let found = sqlite3_vfs_find(base) else {
      preconditionFailure("SQLite has no VFS \(base)")
    }
    self.base = found
    self.passesFileControls = passesFileControls
    self.hasSharedMemory = hasSharedMemory
    UnixVFS.registerCopy(named: name, state: self, of: LayerFile.self, Self.setCalls)
  }

  /// Starts to count calls, and fails the one with this number.
  package func fail(call: Int, _ code: FailureCode) {
    (calls, failedCall, failure) = ([], nil, (call, code))
  }

  /// Lets all calls through.
  package func lift() { failure = nil }

  /// Counts a call, and returns the code with which it must fail; nil if it must succeed.
  func admit(_ call: String, failing code: Int32) -> Int32? {
    defer { calls.append(call) }
    guard let failure, failure.call == calls.count else { return nil }
    failedCall = call
    return failure.code == .outOfMemory ? SQLITE_NOMEM : code
  }

  func note(transfer byteCount: Int32) { longestTransfer = max(longestTransfer, byteCount) }

  private static func setCalls(_ vfs: inout sqlite3_vfs) {
    vfs.xOpen = { vfs, path, memory, flags, outFlags in
      let layer: LayerVFS = UnixVFS.state(vfs)
      guard let memory else { return SQLITE_MISUSE }
      memory.pointee.pMethods = nil
      let kind = LayerFile.kind(flags)
      if let code = layer.admit("open of the \(kind)", failing: SQLITE_CANTOPEN) { return code }
      let file = LayerFile(layer, kind)
      let result = layer.base.pointee.xOpen(layer.base, path, file.base, flags, outFlags)
      guard result == SQLITE_OK else { return result }
      UnsafeMutableRawPointer(memory).storeBytes(
        of: LayerFile.Slot(
          methods: layer.hasSharedMemory ? LayerFile.methods : LayerFile.methodsOfVersion1,
          file: .passRetained(file)),
        as: LayerFile.Slot.self)
      return SQLITE_OK
    }
    vfs.xDelete = { vfs, path, isSynchronizing in
      let layer: LayerVFS = UnixVFS.state(vfs)
      return layer.admit("delete", failing: SQLITE_IOERR | 10 << 8)
        ?? layer.base.pointee.xDelete(layer.base, path, isSynchronizing)
    }
    vfs.xAccess = { vfs, path, flags, result in
      let layer: LayerVFS = UnixVFS.state(vfs)
      return layer.admit("access", failing: SQLITE_IOERR | 13 << 8)
        ?? layer.base.pointee.xAccess(layer.base, path, flags, result)
    }
    vfs.xFullPathname = { vfs, path, byteCount, target in
      let layer: LayerVFS = UnixVFS.state(vfs)
      return layer.base.pointee.xFullPathname(layer.base, path, byteCount, target)
    }
  }
}

/// An open file of a ``LayerVFS``.
final class LayerFile {
  typealias Slot = FileSlot<LayerFile>

  let layer: LayerVFS
  let base: UnsafeMutablePointer<sqlite3_file>
  private let kind: String

  /// What a file is, by the flags with which SQLite opens it.
  static func kind(_ flags: Int32) -> String {
    switch flags & 0x08_7F00 {
    case SQLITE_OPEN_MAIN_DB: "database"
    case SQLITE_OPEN_MAIN_JOURNAL: "journal"
    case SQLITE_OPEN_WAL: "log"
    default: "other file"
    }
  }

  init(_ layer: LayerVFS, _ kind: String) {
    self.layer = layer
    self.kind = kind
    let byteCount = Int(layer.base.pointee.szOsFile)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    base = memory.bindMemory(to: sqlite3_file.self, capacity: 1)
  }

  deinit { UnsafeMutableRawPointer(base).deallocate() }

  private var methods: sqlite3_io_methods { base.pointee.pMethods.pointee }

  // nonisolated(unsafe): written once, before the first file is opened.
  nonisolated(unsafe) static let methods = UnsafePointer(UnixVFS.forever(makeMethods()))

  /// The table of a VFS without shared memory, and with as few functions as SQLite allows.
  nonisolated(unsafe) static let methodsOfVersion1 = {
    var table = makeMethods()
    table.iVersion = 1
    table.xSectorSize = nil
    table.xShmMap = nil
    table.xShmLock = nil
    table.xShmBarrier = nil
    table.xShmUnmap = nil
    return UnsafePointer(UnixVFS.forever(table))
  }()

  private static func with(
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ body: (LayerFile) -> Int32
  ) -> Int32 {
    guard let memory, let file = UnsafeMutableRawPointer(memory).load(as: Slot.self).file else {
      return SQLITE_MISUSE
    }
    return body(file.takeUnretainedValue())
  }

  /// Passes a call on, or fails it with a code of an I/O error.
  private static func attempt(
    _ memory: UnsafeMutablePointer<sqlite3_file>?, _ call: String, failing detail: Int32,
    _ body: (LayerFile) -> Int32
  ) -> Int32 {
    with(memory) { file in
      file.layer.admit("\(call), \(file.kind)", failing: SQLITE_IOERR | detail << 8) ?? body(file)
    }
  }

  /// A length, and whether it is the beginning of a file, which has a header.
  private static func piece(_ byteCount: Int32, _ offset: Int64) -> String {
    "\(byteCount) bytes\(offset == 0 ? " at 0" : "")"
  }

  private static func makeMethods() -> sqlite3_io_methods {
    var table = sqlite3_io_methods()
    table.iVersion = 2
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
    table.xRead = { memory, target, byteCount, offset in
      LayerFile.attempt(
        memory, "read of \(LayerFile.piece(byteCount, offset))", failing: 1
      ) { file in
        file.layer.note(transfer: byteCount)
        return file.methods.xRead(file.base, target, byteCount, offset)
      }
    }
    table.xWrite = { memory, source, byteCount, offset in
      LayerFile.attempt(
        memory, "write of \(LayerFile.piece(byteCount, offset))", failing: 3
      ) { file in
        file.layer.note(transfer: byteCount)
        return file.methods.xWrite(file.base, source, byteCount, offset)
      }
    }
    table.xTruncate = { memory, byteCount in
      LayerFile.attempt(memory, "truncate", failing: 6) {
        $0.methods.xTruncate($0.base, byteCount)
      }
    }
    table.xSync = { memory, flags in
      LayerFile.attempt(memory, "sync", failing: 4) { $0.methods.xSync($0.base, flags) }
    }
    table.xFileSize = { memory, target in
      LayerFile.attempt(memory, "file size", failing: 7) { $0.methods.xFileSize($0.base, target) }
    }
    table.xLock = { memory, level in
      LayerFile.attempt(memory, "lock", failing: 15) { $0.methods.xLock($0.base, level) }
    }
    table.xUnlock = { memory, level in
      LayerFile.with(memory) { $0.methods.xUnlock($0.base, level) }
    }
    table.xCheckReservedLock = { memory, result in
      LayerFile.attempt(memory, "check of the reserved lock", failing: 14) {
        $0.methods.xCheckReservedLock($0.base, result)
      }
    }
    table.xFileControl = { memory, operation, argument in
      LayerFile.with(memory) { file in
        file.layer.fileControls.insert(operation)
        return file.layer.passesFileControls
          ? file.methods.xFileControl(file.base, operation, argument) : SQLITE_NOTFOUND
      }
    }
    table.xSectorSize = { memory in LayerFile.with(memory) { $0.methods.xSectorSize($0.base) } }
    table.xDeviceCharacteristics = { memory in
      LayerFile.with(memory) { $0.methods.xDeviceCharacteristics($0.base) }
    }
    table.xShmMap = { memory, region, byteCount, isExtending, target in
      LayerFile.attempt(memory, "map of the index", failing: 21) {
        $0.methods.xShmMap($0.base, region, byteCount, isExtending, target)
      }
    }
    table.xShmLock = { memory, offset, count, flags in
      flags & SQLITE_SHM_UNLOCK != 0
        ? LayerFile.with(memory) { $0.methods.xShmLock($0.base, offset, count, flags) }
        : LayerFile.attempt(memory, "lock of the index", failing: 20) {
          $0.methods.xShmLock($0.base, offset, count, flags)
        }
    }
    table.xShmBarrier = { memory in
      _ = LayerFile.with(memory) {
        $0.methods.xShmBarrier($0.base)
        return SQLITE_OK
      }
    }
    table.xShmUnmap = { memory, isDeleting in
      LayerFile.with(memory) { $0.methods.xShmUnmap($0.base, isDeleting) }
    }
    return table
  }
}
