internal import CSQLite

/// SQLite's calls on the file of an ``ImageVFS``: <https://sqlite.org/c3ref/io_methods.html>.
enum ImageFileCallbacks {
  /// What SQLite's memory for the file holds.
  @unsafe struct Slot {
    var methods: UnsafePointer<sqlite3_io_methods>?
    var image: Unmanaged<ImageVFS>?
  }

  // nonisolated(unsafe): written once, before the first file is opened.
  nonisolated(unsafe) private static let methods: UnsafePointer<sqlite3_io_methods> = {
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe table.initialize(to: makeMethods())
    return unsafe UnsafePointer(table)
  }()

  /// Puts the open file into SQLite's memory; the image stays until it is closed.
  static func install(_ image: ImageVFS, in memory: UnsafeMutablePointer<sqlite3_file>) {
    unsafe UnsafeMutableRawPointer(memory).storeBytes(
      of: Slot(methods: methods, image: .passRetained(image)), as: Slot.self)
  }

  private static func image(
    _ memory: UnsafeMutablePointer<sqlite3_file>?
  ) -> Unmanaged<ImageVFS>? {
    guard let memory = unsafe memory else { return nil }
    return unsafe UnsafeMutableRawPointer(memory).load(as: Slot.self).image
  }

  private static func makeMethods() -> sqlite3_io_methods {
    var table = sqlite3_io_methods()
    table.iVersion = 1
    unsafe table.xClose = { memory in
      unsafe ImageFileCallbacks.image(memory)?.release()
      unsafe memory?.pointee.pMethods = nil
      return SQLITE_OK
    }
    unsafe table.xRead = { memory, target, byteCount, offset in
      guard let target = unsafe target, let image = unsafe ImageFileCallbacks.image(memory) else {
        return SQLITE_MISUSE
      }
      return unsafe image._withUnsafeGuaranteedRef {
        unsafe $0.read(target, Int(byteCount), at: offset)
      }
    }
    unsafe table.xWrite = { _, _, _, _ in SQLITE_READONLY }
    unsafe table.xTruncate = { _, _ in SQLITE_READONLY }
    unsafe table.xSync = { _, _ in SQLITE_READONLY }
    unsafe table.xFileSize = { memory, target in
      guard let target = unsafe target, let image = unsafe ImageFileCallbacks.image(memory) else {
        return SQLITE_MISUSE
      }
      unsafe target.pointee = image._withUnsafeGuaranteedRef { $0.byteCount }
      return SQLITE_OK
    }
    unsafe table.xLock = { _, _ in SQLITE_OK }
    unsafe table.xUnlock = { _, _ in SQLITE_OK }
    unsafe table.xCheckReservedLock = { _, answer in
      unsafe answer?.pointee = 0
      return SQLITE_OK
    }
    unsafe table.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    unsafe table.xSectorSize = { _ in Int32(PageLayout.byteCount) }
    unsafe table.xDeviceCharacteristics = { _ in SQLITE_IOCAP_IMMUTABLE }
    return table
  }
}
