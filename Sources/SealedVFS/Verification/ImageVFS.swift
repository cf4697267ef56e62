internal import CSQLite
internal import Glibc

/// A VFS with one file, for one connection: the pages of a ``SealedImage``.
///
/// The file states that it is immutable. SQLite then locks nothing, ignores logs and journals for
/// any contents of page 1, and writes nothing: <https://sqlite.org/c3ref/c_iocap_atomic.html>.
/// There is no other file, not even an unnamed one.
@safe final class ImageVFS {
  let name: String
  private let image: SealedImage
  private let onFirstReading: () -> Void
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>
  private let page = Scratch(byteCount: PageLayout.byteCount)
  /// One bit for each page that was read.
  private var readPages: [UInt64]

  /// Registers the VFS under a unique name, until this object is released.
  ///
  /// - Parameter onFirstReading: called when a page is read for the first time.
  init(
    _ image: SealedImage, onFirstReading: @escaping () -> Void
  ) throws(SealedDatabaseError) {
    let unix = try unsafe SealedVFS.underlying("unix", for: image.file.path)
    self.image = image
    self.onFirstReading = onFirstReading
    readPages = Array(repeating: 0, count: Int(image.pageCount) / 64 + 1)
    unsafe vfs = .allocate(capacity: 1)
    // Clock and randomness are those of "unix", which do not use the structure.
    unsafe vfs.initialize(to: unix.pointee)
    // The name is unique as long as we own the memory.
    name = unsafe "sealed-image-\(UInt(bitPattern: vfs))"
    unsafe vfs.pointee.pNext = nil
    unsafe vfs.pointee.szOsFile = Int32(MemoryLayout<FileSlot<ImageVFS>>.size)
    let zName = unsafe sqlite3_create_filename(name, "", "", 0, nil)
    unsafe vfs.pointee.zName = zName
    unsafe vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    unsafe setCalls(&vfs.pointee)
    guard unsafe zName != nil, unsafe sqlite3_vfs_register(vfs, 0) == SQLITE_OK else {
      throw SealedDatabaseError(
        .inputOutput, path: image.file.path, detail: "SQLite refuses the VFS")
    }
  }

  deinit {
    unsafe sqlite3_vfs_unregister(vfs)
    unsafe sqlite3_free_filename(vfs.pointee.zName)
    unsafe vfs.deallocate()
  }

  private func setCalls(_ vfs: inout sqlite3_vfs) {
    unsafe vfs.xOpen = { vfs, _, memory, flags, outFlags in
      guard let memory = unsafe memory, let data = unsafe vfs?.pointee.pAppData else {
        return SQLITE_MISUSE
      }
      unsafe memory.pointee.pMethods = nil
      guard flags & SQLITE_OPEN_MAIN_DB != 0 else { return SQLITE_CANTOPEN }
      unsafe outFlags?.pointee = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY
      unsafe ImageFileCallbacks.install(
        Unmanaged<ImageVFS>.fromOpaque(data).takeUnretainedValue(), in: memory)
      return SQLITE_OK
    }
    unsafe vfs.xDelete = { _, _, _ in SQLITE_READONLY }
    unsafe vfs.xAccess = { _, _, _, answer in
      unsafe answer?.pointee = 0
      return SQLITE_OK
    }
    unsafe vfs.xFullPathname = { _, path, byteCount, target in
      guard let path = unsafe path, let target = unsafe target,
        unsafe strlen(path) < Int(byteCount)
      else { return SQLITE_CANTOPEN }
      unsafe strcpy(target, path)
      return SQLITE_OK
    }
  }

  var byteCount: Int64 { Int64(image.pageCount) * Int64(PageLayout.byteCount) }

  /// Reads a page, or part of one.
  func read(_ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64) -> Int32 {
    let start = Int(offset % Int64(PageLayout.byteCount))
    guard let number = UInt32(exactly: offset / Int64(PageLayout.byteCount) + 1),
      start + byteCount <= PageLayout.byteCount
    else { return SQLITE_IOERR_READ }
    guard number <= image.pageCount else {
      unsafe target.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
      return SQLITE_IOERR_SHORT_READ
    }
    note(number)
    let isWholePage = byteCount == PageLayout.byteCount
    let reading = unsafe image.read(number, into: isWholePage ? target : page.pointer)
    // A free page can be empty, and so can the page of the lock bytes.
    guard reading == .whole || reading == .empty else { return SQLITE_IOERR_READ }
    if !isWholePage { unsafe target.copyMemory(from: page.pointer + start, byteCount: byteCount) }
    return SQLITE_OK
  }

  private func note(_ number: UInt32) {
    let (word, bit) = (Int(number / 64), UInt64(1) << UInt64(number % 64))
    guard readPages[word] & bit == 0 else { return }
    readPages[word] |= bit
    onFirstReading()
  }
}

/// SQLite's calls on the file of an ``ImageVFS``: <https://sqlite.org/c3ref/io_methods.html>.
enum ImageFileCallbacks {
  // nonisolated(unsafe): written once, before the first file is opened.
  nonisolated(unsafe) private static let methods = unsafe FileSlot<ImageVFS>.table(makeMethods())

  /// Stores the open file in SQLite's memory, which retains the image until the file is closed.
  static func install(_ image: ImageVFS, in memory: UnsafeMutablePointer<sqlite3_file>) {
    unsafe FileSlot(methods: methods, file: .passRetained(image)).store(in: memory)
  }

  private static func makeMethods() -> sqlite3_io_methods {
    var table = sqlite3_io_methods()
    table.iVersion = 1
    unsafe table.xClose = { memory in
      unsafe FileSlot<ImageVFS>.file(in: memory)?.release()
      unsafe memory?.pointee.pMethods = nil
      return SQLITE_OK
    }
    unsafe table.xRead = { memory, target, byteCount, offset in
      guard let target = unsafe target, let image = unsafe FileSlot<ImageVFS>.file(in: memory)
      else {
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
      guard let target = unsafe target, let image = unsafe FileSlot<ImageVFS>.file(in: memory)
      else {
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
