internal import CSQLite
internal import Glibc
internal import VaultCrypto

/// The write-ahead log: pages sealed as in the database, frame headers half hidden.
///
/// SQLite reads {0,32}, {24,8}, {frame,24+4096}, {frame+16,8} and {frame+24,4096}, and writes {0,32},
/// {frame,24} and {frame+24,4096}, in the calls of wal.c; anything else is refused. A new frame's header
/// and page, which SQLite writes one after the other, reach the file in one call.
final class LogFile: SealedFile {
  let main: MainFile

  /// One frame as it is on disk.
  let frame = Scratch(byteCount: LogLayout.frameByteCount)
  /// A header, opened or to be written.
  let header = Scratch(byteCount: LogLayout.headerByteCount)
  /// One opened page: for short reads, and to tell whether SQLite writes to the database what a
  /// checkpoint has just read.
  let opened = Scratch(byteCount: PageLayout.byteCount)

  /// The salts of the log header on disk; frames with others belong to an older generation.
  var salts: UInt64?

  /// Whether SQLite is recovering the log.
  ///
  /// Set by a read of the log header, which begins every recovery, and ended by any write: between
  /// the two a frame that does not open is the end of the log, not an error. `walRewriteChecksums`
  /// reads frames in the same way, but after writing.
  var isRecovering = false

  /// Where the frame begins that SQLite read whole just before: a header that it writes there now has
  /// only another checksum.
  var lastFrameRead: Int64?

  /// The frame whose header SQLite has just written: it waits in `frame` for the page that comes next.
  private var begun: (start: Int64, page: UInt32)?

  init(base: BaseFile, main: MainFile) {
    self.main = main
    super.init(base: base, registered: main.registered, faults: main.faults)
    main.log = self
  }

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    main.checkpointed = nil
    let result = writeBegunHeader()
    return result == SQLITE_OK ? unsafe answer(target, byteCount, at: offset) : result
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    isRecovering = false
    main.checkpointed = nil
    defer { lastFrameRead = nil }
    if let begun, offset != begun.start + Int64(LogLayout.frameHeaderByteCount) {
      let result = writeBegunHeader()
      guard result == SQLITE_OK else { return result }
    }
    if offset == 0 && byteCount == LogLayout.headerByteCount {
      return unsafe writeHeader(source)
    }
    guard let place = LogLayout.place(at: offset) else { return SQLITE_IOERR_WRITE }
    switch (place.within, byteCount) {
    case (0, LogLayout.frameHeaderByteCount):
      return unsafe writeFrameHeader(source, at: place.start)
    case (LogLayout.frameHeaderByteCount, PageLayout.byteCount):
      return unsafe writePage(source, inFrameAt: place.start)
    default:
      return SQLITE_IOERR_WRITE
    }
  }

  override func synchronize(_ flags: Int32) -> Int32 {
    main.nonces.end()
    let result = writeBegunHeader()
    return result == SQLITE_OK ? base.synchronize(flags) : result
  }

  override func truncate(to byteCount: Int64) -> Int32 {
    begun = nil  // all that SQLite has not finished lies behind
    return base.truncate(to: byteCount)
  }

  private func writeHeader(_ source: UnsafeRawPointer) -> Int32 {
    unsafe header.pointer.copyMemory(from: source, byteCount: LogLayout.headerByteCount)
    guard unsafe LogHeader.conceal(header.pointer) else {
      return fail(.reserveInUse, SQLITE_IOERR_WRITE)  // another page size
    }
    unsafe salts = header.pointer.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    return unsafe base.write(header.pointer, LogLayout.headerByteCount, at: 0)
  }

  /// Begins a frame, or changes the checksum in the header of one that SQLite has just read.
  private func writeFrameHeader(_ source: UnsafeRawPointer, at start: Int64) -> Int32 {
    unsafe frame.pointer.copyMemory(from: source, byteCount: LogLayout.frameHeaderByteCount)
    do throws(CryptoError) {
      try unsafe main.keys.frameHeader.encrypt(
        UnsafeMutableRawBufferPointer(
          start: frame.pointer + LogLayout.hiddenOffset, count: LogLayout.hiddenByteCount),
        tweak: UInt64(start))
    } catch {
      return fail(.ioFailed, SQLITE_IOERR_WRITE)
    }
    unsafe begun = (start, source.bigEndianWord(at: 0))
    return lastFrameRead == start ? writeBegunHeader() : SQLITE_OK
  }

  /// Writes the header that waits for its page, if there is one, without it.
  private func writeBegunHeader() -> Int32 {
    guard let begun else { return SQLITE_OK }
    self.begun = nil
    return unsafe base.write(frame.pointer, LogLayout.frameHeaderByteCount, at: begun.start)
  }

  /// Writes a page into a frame that SQLite has just begun, together with its header, or, when SQLite
  /// writes a page a second time within a transaction, into one that is there.
  private func writePage(_ source: UnsafeRawPointer, inFrameAt start: Int64) -> Int32 {
    let begun = self.begun
    self.begun = nil
    let number: UInt32
    if let begun {
      number = begun.page
    } else {
      let result = unsafe base.read(header.pointer, 4, at: start)
      guard result == SQLITE_OK else { return result }
      number = unsafe UnsafeRawPointer(header.pointer).bigEndianWord(at: 0)
    }
    if number == 1 {
      if unsafe !main.keys.page.hasRoom(in: source) {
        return fail(.reserveInUse, SQLITE_IOERR_WRITE)
      }
      main.knowsPageOne = true
      unsafe main.notePageCount(page: source)
    }
    let sealed = unsafe frame.pointer + LogLayout.frameHeaderByteCount
    guard
      unsafe main.keys.page.seal(source, number: number, into: sealed, nonces: &main.nonces)
    else { return fail(.reserveInUse, page: number, SQLITE_IOERR_WRITE) }
    if begun != nil { return unsafe base.write(frame.pointer, LogLayout.frameByteCount, at: start) }
    return unsafe base.write(
      sealed, PageLayout.byteCount, at: start + Int64(LogLayout.frameHeaderByteCount))
  }
}
