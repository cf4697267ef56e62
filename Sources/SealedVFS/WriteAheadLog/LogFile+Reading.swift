internal import CSQLite
internal import Glibc
internal import VaultCrypto

extension LogFile {
  /// Answers one of the reads of wal.c.
  func answer(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    guard let place = LogLayout.place(at: offset) else {
      return try unsafe readHeader(target, byteCount, at: Int(offset))
    }
    let headerByteCount = LogLayout.frameHeaderByteCount
    switch (place.within, byteCount) {
    case (0, LogLayout.frameByteCount):
      try unsafe readFrame(place.frame, at: place.start, into: target)
    case (headerByteCount, PageLayout.byteCount):
      try unsafe readPage(inFrameAt: place.start, into: target)
    case (let within, _) where within + byteCount <= headerByteCount:
      try unsafe base.read(frame.pointer, headerByteCount, at: place.start)
      try unsafe decryptHeader(of: frame.pointer, at: place.start)
      unsafe target.copyMemory(from: header.pointer + within, byteCount: byteCount)
    case (let within, _)
    where within >= headerByteCount && within + byteCount <= LogLayout.frameByteCount:
      try unsafe readPage(inFrameAt: place.start, into: opened.pointer)
      unsafe target.copyMemory(
        from: opened.pointer + (within - headerByteCount), byteCount: byteCount)
    default:
      throw ResultCode(SQLITE_IOERR_READ)
    }
  }

  /// Reads the log header, or part of it, as SQLite wrote it.
  private func readHeader(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int
  ) throws(ResultCode) {
    guard offset + byteCount <= LogLayout.headerByteCount else {
      throw ResultCode(SQLITE_IOERR_READ)
    }
    // Another database can have replaced the contents of all files.
    if offset == 0 { try main.learnIdentity() }
    try unsafe base.read(header.pointer, LogLayout.headerByteCount, at: 0)
    let kind = unsafe LogHeader.convertToSQLiteForm(header.pointer)
    if kind == .foreign { fail(.unrelatedCompanionFile, SQLITE_OK) }
    unsafe salts = header.pointer.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    if offset == 0 {
      isRecovering = true
      recovered = kind == .sealed ? unsafe (FrameChain(header: header.pointer), 0) : nil
      if kind == .invalid { try noteFramesWithoutHeader() }
    }
    unsafe target.copyMemory(from: header.pointer + offset, byteCount: byteCount)
  }

  /// Reads a page of the log, for a reader or a checkpoint.
  private func readPage(
    inFrameAt start: Int64, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) {
    var whole = unsafe UnsafeRawPointer(frame.pointer)
    if main.isCheckpointing, let found = unsafe readAhead.piece(at: start, of: base) {
      unsafe whole = found
    } else {
      try unsafe base.read(frame.pointer, LogLayout.frameByteCount, at: start)
    }
    try unsafe decryptHeader(of: whole, at: start)
    let number = unsafe header.pointer.bigEndianWord(at: 0)
    let sealed = unsafe whole + LogLayout.frameHeaderByteCount
    guard try hasCurrentSalts(), try unsafe open(sealed, number: number, into: target) else {
      unsafe memset(target, 0, PageLayout.byteCount)
      main.hasMetDamage = true
      throw fail(.damagedPage, page: number, SQLITE_IOERR_DATA)
    }
    if number == 1 { unsafe main.notePageOne(target) }
    if main.isCheckpointing {
      unsafe opened.pointer.copyMemory(from: target, byteCount: PageLayout.byteCount)
      unsafe main.checkpointed = CheckpointedPage(
        number: number, target: target, opened: opened.pointer, sealed: sealed)
    }
  }

  /// Reads a whole frame, for a recovery or when SQLite computes checksums again.
  private func readFrame(
    _ index: Int64, at start: Int64, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) {
    try unsafe base.read(frame.pointer, LogLayout.frameByteCount, at: start)
    lastFrameRead = start
    try unsafe decryptHeader(of: frame.pointer, at: start)
    unsafe target.copyMemory(from: header.pointer, byteCount: LogLayout.frameHeaderByteCount)
    let number = unsafe header.pointer.bigEndianWord(at: 0)
    let isCurrent = try hasCurrentSalts()
    let isWhole =
      isCurrent
      ? try unsafe open(
        frame.pointer + LogLayout.frameHeaderByteCount, number: number,
        into: target + LogLayout.frameHeaderByteCount) : false
    if isWhole {
      if isRecovering { try unsafe followChain(to: index, target) }
      return
    }
    // The zeroed frame has page number 0, which no checksum makes valid: recovery ends before it.
    unsafe memset(target, 0, LogLayout.frameByteCount)
    guard isRecovering else {
      throw fail(.damagedPage, page: number, SQLITE_IOERR_DATA)
    }
    try noteTail(from: index, isCurrent: isCurrent)
  }

  private func open(
    _ sealed: UnsafeRawPointer, number: UInt32, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) -> Bool {
    try unsafe ResultCode.translatingCryptoErrors(
      main.keys.page.open(sealed, number: number, into: target))
  }

  /// Looks whether SQLite will take a frame that opened as the next one, and reports what it leaves out.
  ///
  /// A frame that does not follow the one before is as a rule what a transaction left that was rolled back, or
  /// that a kill ended: its salts are right, it opens, and no commit is in it or after it. It was damaged, or
  /// the log's header was, where a commit of this generation lies there, or where another commit size makes the
  /// checksum right: SQLite left no such frame.
  private func followChain(
    to index: Int64, _ frame: UnsafeRawPointer
  ) throws(ResultCode) {
    guard var (chain, last) = recovered, last + 1 == index else { return }
    recovered = nil
    let page = unsafe frame + LogLayout.frameHeaderByteCount
    if unsafe chain.follow(frame, page) {
      last = index
      recovered = (chain, last)
    } else {
      try noteTail(
        from: index, isCurrent: true,
        isKnownDamage: unsafe chain.wouldFollow(frame, page))
    }
  }

  /// Copies a frame's header to `header`, with salts and checksum decrypted.
  private func decryptHeader(
    of frame: UnsafeRawPointer, at start: Int64
  ) throws(ResultCode) {
    unsafe header.pointer.copyMemory(from: frame, byteCount: LogLayout.frameHeaderByteCount)
    try unsafe ResultCode.translatingCryptoErrors(
      FrameChain.decrypt(header.pointer, at: start, main.keys.frameHeader))
  }

  /// Whether the frame header in `header` carries the log's current salts.
  ///
  /// A frame that was moved, or kept from before the log's last restart, does not.
  private func hasCurrentSalts() throws(ResultCode) -> Bool {
    let found = unsafe header.pointer.loadUnaligned(
      fromByteOffset: LogLayout.encryptedOffset, as: UInt64.self)
    if found == salts { return true }
    // SQLite writes zeros for salts and checksum until it computes the transaction's checksums.
    if !isRecovering,
      unsafe UnsafeRawBufferPointer(
        start: header.pointer + LogLayout.encryptedOffset, count: LogLayout.encryptedByteCount
      ).isZero
    {
      return true
    }
    // Another connection can have restarted the log since this one read its header.
    var onDisk: UInt64 = 0
    do throws(ResultCode) {
      try unsafe base.read(&onDisk, 8, at: 16)
    } catch {
      // A disk that fails is no damage.
      guard error.isShortRead else { throw error }
      return false
    }
    salts = onDisk
    return found == onDisk
  }

  /// Reports all frames after an invalid header.
  ///
  /// SQLite takes such a log for an empty one, and nothing else reports the commits in it.
  private func noteFramesWithoutHeader() throws(ResultCode) {
    let count = LogLayout.frameCount(inFileOf: try base.byteCount())
    guard count > 0 else { return }
    registered.record(
      DiscardedLogTail(
        firstFrame: 1, frameCount: min(count, DiscardedLogTail.maximumFrameCount)))
  }

  /// Counts the frames of this generation, from the first that recovery leaves out.
  ///
  /// The count ends at the furthest frame that SQLite can have written: a sparse file can claim any
  /// length.
  ///
  /// - Parameter isKnownDamage: false if only a commit among the frames shows that they are more than what a
  ///   transaction without a commit left; nil if that is not asked.
  private func noteTail(
    from index: Int64, isCurrent: Bool, isKnownDamage: Bool? = nil
  ) throws(ResultCode) {
    var frameCount = isCurrent ? 1 : 0
    var isReported =
      unsafe isKnownDamage ?? true || header.pointer.bigEndianWord(at: 4) != 0
    for next in index..<index + Int64(DiscardedLogTail.maximumFrameCount) {
      let start = LogLayout.offset(ofFrame: next + 1)
      do throws(ResultCode) {
        try unsafe base.read(frame.pointer, LogLayout.frameHeaderByteCount, at: start)
      } catch {
        // The end of the file, or a failure after the end of the recovered log.
        break
      }
      try unsafe decryptHeader(of: frame.pointer, at: start)
      let found = unsafe header.pointer.loadUnaligned(
        fromByteOffset: LogLayout.encryptedOffset, as: UInt64.self)
      if found == salts {
        frameCount = Int(next - index) + 2
        if unsafe header.pointer.bigEndianWord(at: 4) != 0 { isReported = true }
      }
    }
    guard frameCount > 0, isReported else { return }
    registered.record(DiscardedLogTail(firstFrame: Int(index), frameCount: frameCount))
  }
}
