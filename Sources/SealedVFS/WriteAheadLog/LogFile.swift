internal import VaultCrypto

/// The write-ahead log: pages sealed as in the database, and frame headers half encrypted.
///
/// SQLite reads, as {offset, byte count}: {0,32}, {24,8}, {frame,24+4096}, {frame+16,8} and
/// {frame+24,4096}. It writes {0,32}, {frame,24} and {frame+24,4096}. Any other call is refused.
///
/// New frames are gathered in memory and written together. The frame that commits writes them
/// before its own write returns. So does any other call, because its result could depend on them.
/// Frames that are left when SQLite releases the write lock were rolled back; the next writer uses
/// their place in the log.
final class LogFile: SealedFile {
  let main: MainFile

  /// One frame as it is on disk.
  let frame = Scratch(byteCount: LogLayout.frameByteCount)
  /// A header, decrypted or about to be written.
  let header = Scratch(byteCount: LogLayout.headerByteCount)
  /// One opened page: for short reads, and to compare with the page that a checkpoint writes next.
  let opened = Scratch(byteCount: PageLayout.byteCount)

  /// The salts of the log header on disk; frames with other salts belong to an older generation.
  var salts: UInt64?

  /// Whether SQLite is recovering the log.
  ///
  /// A read of the log header sets it, which begins every recovery. Any write ends it. Between the
  /// two, a frame that does not open is the end of the log, not an error. `walRewriteChecksums`
  /// reads frames in the same way, but after writing.
  var isRecovering = false

  /// The frames that a recovery has taken so far: their chain, and the number of the last.
  var recovered: (chain: FrameChain, last: Int64)?

  /// The offset of the frame that SQLite read whole just before.
  ///
  /// If SQLite then writes its header, only the checksum differs.
  var lastFrameRead: Int64?

  private var pending = PendingFrames()

  /// Whether the frame that commits has reached the file and the write lock is still held.
  ///
  /// A recovery can find the frame. From then on a full disk is reported as an I/O error, because
  /// `SQLITE_FULL` means that nothing was changed.
  private(set) var mayHaveCommitted = false

  /// Frames that a checkpoint reads next; they do not change until it is done.
  var readAhead = ReadAhead(of: LogLayout.frameByteCount, from: Int64(LogLayout.headerByteCount))

  init(base: BaseFile, main: MainFile) {
    self.main = main
    super.init(base: base, registered: main.registered, faults: main.faults)
    unsafe main.log = self
  }

  deinit {
    if unsafe main.log === self { unsafe main.log = nil }
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    main.checkpointed = nil  // its page lies in the memory that this call writes
    try writePending()
    try unsafe answer(target, byteCount, at: offset)
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    isRecovering = false
    recovered = nil
    main.checkpointed = nil
    readAhead.forget()
    defer { lastFrameRead = nil }
    if offset == 0 && byteCount == LogLayout.headerByteCount {
      try writePending()
      return try unsafe writeHeader(source)
    }
    guard let place = LogLayout.place(at: offset) else { throw ResultCode(SQLITE_IOERR_WRITE) }
    switch (place.within, byteCount) {
    case (0, LogLayout.frameHeaderByteCount) where lastFrameRead == place.start:
      try unsafe rewriteFrameHeader(source, at: place.start)
    case (0, LogLayout.frameHeaderByteCount):
      try unsafe beginFrame(source, at: place.start)
    case (LogLayout.frameHeaderByteCount, PageLayout.byteCount):
      try unsafe writePage(source, inFrameAt: place.start)
    default:
      throw ResultCode(SQLITE_IOERR_WRITE)
    }
  }

  override func synchronize(_ flags: Int32) throws(ResultCode) {
    main.nonces.end()
    try writePending()
    try base.synchronize(flags, namesFullDisk: !mayHaveCommitted)
    // A commit that is in the log of a replaced database is lost with it.
    if main.base.hasMoved { throw main.fail(.fileReplaced, SQLITE_IOERR_FSYNC) }
  }

  override func truncate(to byteCount: Int64) throws(ResultCode) {
    try writePending()
    try base.truncate(to: byteCount)
  }

  override func byteCount() throws(ResultCode) -> Int64 {
    try writePending()
    return try base.byteCount()
  }

  /// Discards frames of a transaction that did not commit; another writer can use their place next.
  func endTransaction() {
    pending.removeAll()
    mayHaveCommitted = false
  }

  /// Writes the pending frames.
  ///
  /// After a failed write they stay pending. SQLite was told that these frames are in the log, and
  /// after a failed statement it can still commit its earlier changes. The one exception is the
  /// frame whose write gets this result: see ``writePage(_:inFrameAt:)``.
  private func writePending() throws(ResultCode) {
    if pending.isEmpty { return }
    try unsafe base.write(pending.pointer, pending.byteCount, at: pending.start)
    pending.removeAll()
  }

  private func writeHeader(_ source: UnsafeRawPointer) throws(ResultCode) {
    unsafe header.pointer.copyMemory(from: source, byteCount: LogLayout.headerByteCount)
    guard unsafe LogHeader.convertToDiskForm(header.pointer) else {
      throw fail(.otherPageSize, SQLITE_IOERR_WRITE)
    }
    unsafe salts = header.pointer.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    try unsafe base.write(header.pointer, LogLayout.headerByteCount, at: 0)
  }

  /// Writes the header of a frame whose page comes next.
  private func beginFrame(_ source: UnsafeRawPointer, at start: Int64) throws(ResultCode) {
    if !pending.canBegin(at: start) { try writePending() }
    try unsafe encrypt(pending.begin(at: start, header: source), at: start)
  }

  /// Writes a header with another checksum before an unchanged page.
  ///
  /// `walRewriteChecksums` does so at the end of a transaction, for frames that it has read just
  /// before.
  private func rewriteFrameHeader(
    _ source: UnsafeRawPointer, at start: Int64
  ) throws(ResultCode) {
    unsafe header.pointer.copyMemory(from: source, byteCount: LogLayout.frameHeaderByteCount)
    try unsafe encrypt(header.pointer, at: start)
    try unsafe base.write(header.pointer, LogLayout.frameHeaderByteCount, at: start)
  }

  /// Encrypts salts and checksum of the frame header for an offset.
  private func encrypt(
    _ header: UnsafeMutableRawPointer, at start: Int64
  ) throws(ResultCode) {
    try unsafe ResultCode.translatingCryptoErrors(
      main.keys.frameHeader.encrypt(
        header + LogLayout.encryptedOffset, tweak: UInt64(start)))
  }

  /// Writes the page of the frame that was begun.
  ///
  /// If SQLite writes a page a second time within a transaction, this replaces the page of the
  /// existing frame.
  private func writePage(
    _ source: UnsafeRawPointer, inFrameAt start: Int64
  ) throws(ResultCode) {
    let offset = start + Int64(LogLayout.frameHeaderByteCount)
    if let begun = pending.begun, pending.end == offset {
      try unsafe main.seal(source, number: begun.page, into: pending.room)
      pending.finish()
      guard pending.areDue else { return }
      do throws(ResultCode) {
        try writePending()
      } catch {
        // SQLite is told that this frame is not in the log. If the frame stayed pending, a read
        // during the rollback would write it, and a recovery would find the refused commit.
        pending.removeLast()
        throw error
      }
      if begun.commits { mayHaveCommitted = true }
      return
    }
    try writePending()
    try unsafe base.read(header.pointer, 4, at: start)
    let number = unsafe header.pointer.bigEndianWord(at: 0)
    try unsafe main.seal(source, number: number, into: frame.pointer)
    try unsafe base.write(frame.pointer, PageLayout.byteCount, at: offset)
  }
}
