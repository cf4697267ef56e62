internal import VaultCrypto

/// The contents of a whole write-ahead log, read frame by frame as SQLite's recovery would.
///
/// Its memory is a block of frames, and eight bytes for each page with a committed frame.
struct LogScan {
  private(set) var report = VerificationReport.Log(state: .absent)

  /// The database's size after the last commit; nil when there is none.
  private(set) var pageCount: UInt32?

  /// The number of the frame with each page's newest committed copy, from 1.
  private(set) var frames: [UInt32: UInt32] = [:]

  static let framesAtOnce = 64

  init() {}

  /// Reads the log.
  ///
  /// - Parameter advance: receives the number of frames read, and of all frames.
  init(
    _ file: LockedInputFile, keys: FileKeys, advance: (Int, Int) -> Void
  ) throws(SealedDatabaseError) {
    let byteCount = try file.byteCount()
    let headerByteCount = LogLayout.headerByteCount
    let header = Scratch(byteCount: headerByteCount)
    report.state = .empty
    if byteCount < headerByteCount { return }
    guard unsafe file.read(header.pointer, headerByteCount, at: 0) else {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    let frameCount = LogLayout.frameCount(inFileOf: byteCount)
    switch unsafe LogHeader.convertToSQLiteForm(header.pointer) {
    case .invalid:
      report.frameCount = frameCount
      if frameCount > 0 {
        report.discardedTail = DiscardedLogTail(firstFrame: 1, frameCount: frameCount)
      }
    case .foreign: report.state = .foreign
    case .sealed:
      report.state = .sealed
      report.frameCount = frameCount
      var chain = unsafe FrameChain(header: header.pointer)
      try read(file, &chain, keys, advance)
    }
  }

  /// Takes the commits of another generation for those that count.
  mutating func follow(_ other: OtherGeneration) {
    frames = other.frames
    pageCount = other.pageCount
  }

  private mutating func read(
    _ file: LockedInputFile, _ chain: inout FrameChain, _ keys: FileKeys,
    _ advance: (Int, Int) -> Void
  ) throws(SealedDatabaseError) {
    let block = Scratch(byteCount: Self.framesAtOnce * LogLayout.frameByteCount)
    let opened = Scratch(byteCount: PageLayout.byteCount)
    var open: [UInt32: UInt32] = [:]
    var (firstLeftOut, lastLeftOut) = (0, 0)
    var next = 1
    while next <= report.frameCount {
      let count = min(Self.framesAtOnce, report.frameCount - next + 1)
      let start = LogLayout.offset(ofFrame: next)
      let isRead = unsafe file.read(block.pointer, count * LogLayout.frameByteCount, at: start)
      for index in 0..<count {
        let number = next + index
        let frame = unsafe block.pointer + index * LogLayout.frameByteCount
        let offset = start + Int64(index * LogLayout.frameByteCount)
        // A block that cannot be read as a whole is read frame by frame.
        let isThere =
          unsafe isRead || file.read(frame, LogLayout.frameByteCount, at: offset)
        let isCurrent = try unsafe translatingCryptoErrors(
          at: file.path,
          isThere
            ? chain.decryptHeader(of: frame, at: offset, keys.frameHeader) : false)
        guard firstLeftOut == 0 else {
          if isCurrent { lastLeftOut = number }
          continue
        }
        let isNext = try unsafe translatingCryptoErrors(
          at: file.path, isCurrent ? chain.accept(frame, opened.pointer, keys.page) : false)
        guard isNext else {
          firstLeftOut = number
          if isCurrent { lastLeftOut = number }
          continue
        }
        report.validFrameCount = number
        let page = unsafe frame.bigEndianWord(at: 0)
        let sealed = unsafe frame + LogLayout.frameHeaderByteCount
        if unsafe keys.page.isHeaderChanged(in: sealed, number: page),
          report.changedHeaderFrames.count < VerificationReport.listLimit
        {
          report.changedHeaderFrames.append(number)
        }
        open[page] = UInt32(number)
        let size = unsafe frame.bigEndianWord(at: 4)
        if size != 0 {
          frames.merge(open) { $1 }
          open.removeAll(keepingCapacity: true)
          pageCount = size
          report.committedFrameCount = number
        }
      }
      next += count
      advance(min(next - 1, report.frameCount), report.frameCount)
    }
    if try hasCutFrame(file, chain, keys, block) {
      lastLeftOut = report.frameCount + 1
      if firstLeftOut == 0 { firstLeftOut = lastLeftOut }
    }
    if lastLeftOut > 0 {
      report.discardedTail = DiscardedLogTail(
        firstFrame: firstLeftOut, frameCount: lastLeftOut - firstLeftOut + 1)
    }
    report.staleFrameCount = max(
      0, report.frameCount - max(lastLeftOut, report.validFrameCount))
  }

  /// Whether the file ends within a frame of the present generation.
  private func hasCutFrame(
    _ file: LockedInputFile, _ chain: FrameChain, _ keys: FileKeys, _ scratch: borrowing Scratch
  ) throws(SealedDatabaseError) -> Bool {
    let offset = LogLayout.offset(ofFrame: report.frameCount + 1)
    let headerByteCount = LogLayout.frameHeaderByteCount
    guard try file.byteCount() - offset >= headerByteCount,
      unsafe file.read(scratch.pointer, headerByteCount, at: offset)
    else { return false }
    let frame = unsafe scratch.pointer
    return try unsafe translatingCryptoErrors(
      at: file.path, chain.decryptHeader(of: frame, at: offset, keys.frameHeader))
  }
}
