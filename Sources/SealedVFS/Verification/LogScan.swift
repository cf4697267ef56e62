internal import CSQLite
internal import Glibc
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

  static func offset(ofFrame number: UInt32) -> Int64 {
    Int64(LogLayout.headerByteCount) + Int64(number - 1) * Int64(LogLayout.frameByteCount)
  }

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
    guard byteCount >= headerByteCount else {
      report = VerificationReport.Log(state: .empty)
      return
    }
    guard unsafe file.read(header.pointer, headerByteCount, at: 0) else {
      throw SealedDatabaseError(.inputOutput, path: file.path)
    }
    let frameCount = LogLayout.frameCount(inFileOf: byteCount)
    switch unsafe LogHeader.reveal(header.pointer) {
    case .invalid:
      report = VerificationReport.Log(state: .empty)
      report.frameCount = frameCount
      if frameCount > 0 {
        report.discardedTail = DiscardedLogTail(firstFrame: 1, frameCount: frameCount)
      }
    case .foreign: report = VerificationReport.Log(state: .foreign)
    case .sealed:
      report = VerificationReport.Log(state: .sealed)
      report.frameCount = frameCount
      var chain = unsafe FrameChain(header: header.pointer)
      read(file, &chain, keys, advance)
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
  ) {
    let block = Scratch(byteCount: Self.framesAtOnce * LogLayout.frameByteCount)
    let opened = Scratch(byteCount: PageLayout.byteCount)
    var open: [UInt32: UInt32] = [:]
    var (firstLeftOut, lastLeftOut) = (0, 0)
    var next = 1
    while next <= report.frameCount {
      let count = min(Self.framesAtOnce, report.frameCount - next + 1)
      let start = Self.offset(ofFrame: UInt32(truncatingIfNeeded: next))
      let isRead = unsafe file.read(block.pointer, count * LogLayout.frameByteCount, at: start)
      for index in 0..<count {
        let number = next + index
        let frame = unsafe block.pointer + index * LogLayout.frameByteCount
        let offset = start + Int64(index * LogLayout.frameByteCount)
        // A block that cannot be read as a whole is read frame by frame.
        let isThere =
          unsafe isRead || file.read(frame, LogLayout.frameByteCount, at: offset)
        let isCurrent =
          unsafe isThere && chain.revealHeader(of: frame, at: offset, keys.frameHeader)
        guard firstLeftOut == 0 else {
          if isCurrent { lastLeftOut = number }
          continue
        }
        guard isCurrent, unsafe chain.accept(frame, opened.pointer, keys.page) else {
          firstLeftOut = number
          if isCurrent { lastLeftOut = number }
          continue
        }
        report.validFrameCount = number
        let page = unsafe UnsafeRawPointer(frame).bigEndianWord(at: 0)
        let sealed = unsafe frame + LogLayout.frameHeaderByteCount
        if unsafe keys.page.isHeaderChanged(in: sealed, number: page),
          report.changedHeaderFrames.count < VerificationReport.listLimit
        {
          report.changedHeaderFrames.append(number)
        }
        open[page] = UInt32(number)
        let size = unsafe UnsafeRawPointer(frame).bigEndianWord(at: 4)
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
    if hasCutFrame(file, chain, keys, block) {
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
  ) -> Bool {
    let offset = Self.offset(ofFrame: UInt32(truncatingIfNeeded: report.frameCount + 1))
    let headerByteCount = LogLayout.frameHeaderByteCount
    guard let end = try? file.byteCount(), end - offset >= headerByteCount,
      unsafe file.read(scratch.pointer, headerByteCount, at: offset)
    else { return false }
    return unsafe chain.revealHeader(of: scratch.pointer, at: offset, keys.frameHeader)
  }
}

/// The chain of salts and running checksum that links the frames of a log:
/// <https://sqlite.org/fileformat2.html#walformat>.
struct FrameChain {
  private let salts: UInt64
  private let isBigEndian: Bool
  private var sum: (UInt32, UInt32)

  /// Begins at a decoded log header.
  init(header: UnsafeMutableRawPointer) {
    let bytes = UnsafeRawPointer(header)
    unsafe isBigEndian = bytes.bigEndianWord(at: 0) & 1 == 1
    unsafe salts = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    unsafe sum = (bytes.bigEndianWord(at: 24), bytes.bigEndianWord(at: 28))
  }

  /// Begins at a frame and ignores the log's header; nil if the frame's page does not open.
  init?(
    first frame: UnsafeMutableRawPointer, at offset: Int64, _ keys: FileKeys, isBigEndian: Bool,
    _ page: UnsafeMutableRawPointer
  ) {
    let header = UnsafeRawPointer(frame)
    let number = unsafe header.bigEndianWord(at: 0)
    guard unsafe Self.reveal(frame, at: offset, keys.frameHeader), number != 0,
      unsafe keys.page.open(frame + LogLayout.frameHeaderByteCount, number: number, into: page)
    else { return nil }
    self.isBigEndian = isBigEndian
    unsafe salts = header.loadUnaligned(fromByteOffset: LogLayout.hiddenOffset, as: UInt64.self)
    unsafe sum = (header.bigEndianWord(at: 16), header.bigEndianWord(at: 20))
  }

  /// Decrypts a frame's header in place.
  ///
  /// - Returns: whether the frame belongs to this generation.
  func revealHeader(
    of frame: UnsafeMutableRawPointer, at offset: Int64, _ cipher: AES256XTS
  ) -> Bool {
    guard unsafe Self.reveal(frame, at: offset, cipher) else { return false }
    return unsafe frame.loadUnaligned(fromByteOffset: LogLayout.hiddenOffset, as: UInt64.self)
      == salts
  }

  private static func reveal(
    _ frame: UnsafeMutableRawPointer, at offset: Int64, _ cipher: AES256XTS
  ) -> Bool {
    do throws(CryptoError) {
      try unsafe cipher.decrypt(frame + LogLayout.hiddenOffset, tweak: UInt64(offset))
      return true
    } catch {
      return false
    }
  }

  /// Whether a frame of this generation comes next: its page opens and its checksum is right.
  mutating func accept(
    _ frame: UnsafeMutableRawPointer, _ page: UnsafeMutableRawPointer, _ cipher: PageCipher
  ) -> Bool {
    let header = UnsafeRawPointer(frame)
    let number = unsafe header.bigEndianWord(at: 0)
    guard number != 0,
      unsafe cipher.open(frame + LogLayout.frameHeaderByteCount, number: number, into: page)
    else { return false }
    return unsafe follow(header, UnsafeRawPointer(page))
  }

  /// Whether the checksum of a frame, header and page opened, follows from the frame before.
  mutating func follow(_ header: UnsafeRawPointer, _ page: UnsafeRawPointer) -> Bool {
    var next = unsafe continued(sum, header, LogLayout.hiddenOffset)
    next = unsafe continued(next, page, PageLayout.byteCount)
    guard unsafe next == (header.bigEndianWord(at: 16), header.bigEndianWord(at: 20)) else {
      return false
    }
    sum = next
    return true
  }

  /// Whether the checksum follows from the frame before if another commit size stands in bytes 4..7.
  ///
  /// The checksum is linear in that word w modulo 2^32: sum(w) = sum(0) + w * f, where f is a pair of
  /// neighbouring Fibonacci numbers, F(1024) and F(1025). Both are odd, so one w fits the first half; the
  /// second half then proves it.
  func wouldFollow(_ header: UnsafeRawPointer, _ page: UnsafeRawPointer) -> Bool {
    let first = Scratch(byteCount: LogLayout.hiddenOffset)
    func sum(withCommitSize word: UInt32) -> (UInt32, UInt32) {
      unsafe first.pointer.copyMemory(from: header, byteCount: 4)
      unsafe first.pointer.storeBigEndian(isBigEndian ? word : word.byteSwapped, at: 4)
      let next = unsafe continued(self.sum, first.pointer, LogLayout.hiddenOffset)
      return unsafe continued(next, page, PageLayout.byteCount)
    }
    let zero = sum(withCommitSize: 0)
    let one = sum(withCommitSize: 1)
    let factor = one.0 &- zero.0
    // Newton's iteration for the inverse of an odd number: three bits are right, then 6, 12, 24, 48.
    let inverse = (0..<4).reduce(factor) { guess, _ in guess &* (2 &- factor &* guess) }
    let found = unsafe (header.bigEndianWord(at: 16), header.bigEndianWord(at: 20))
    return sum(withCommitSize: (found.0 &- zero.0) &* inverse) == found
  }

  private func continued(
    _ sum: (UInt32, UInt32), _ bytes: UnsafeRawPointer, _ byteCount: Int
  ) -> (UInt32, UInt32) {
    var sum = sum
    for offset in stride(from: 0, to: byteCount, by: 8) {
      let first = unsafe bytes.bigEndianWord(at: offset)
      let second = unsafe bytes.bigEndianWord(at: offset + 4)
      sum.0 &+= (isBigEndian ? first : first.byteSwapped) &+ sum.1
      sum.1 &+= (isBigEndian ? second : second.byteSwapped) &+ sum.0
    }
    return sum
  }
}
