internal import Glibc
internal import VaultCrypto

/// The commits of frame 1's generation in a log whose header names another generation.
///
/// The header's salts are in the clear, and its checksum has no key. A change there makes every
/// frame look like one from before the log's last restart. SQLite restarts a log only after it has
/// copied all of it to the database. A page that the database lacks therefore shows that the header
/// was changed.
struct OtherGeneration {
  private(set) var frameCount = 0
  private(set) var commitCount = 0
  /// The database's size after the last commit.
  private(set) var pageCount: UInt32 = 0
  /// The number of the frame with each page's last committed copy, from 1.
  ///
  /// A page is missing here if the generation has a later frame of it, whole or torn, behind the last commit that could
  /// be followed. The next generation overwrites the log from its beginning, and a power cut can keep any of its sectors:
  /// the database can hold the copy of the later frame.
  private(set) var frames: [UInt32: UInt32] = [:]

  /// The number of pages whose last committed copy is not in the database.
  fileprivate(set) var missingPageCount = 0

  var report: VerificationReport.Log.OtherGeneration {
    VerificationReport.Log.OtherGeneration(
      frameCount: frameCount, commitCount: commitCount, missingPageCount: missingPageCount)
  }

  private init() {}

  /// Follows the frames from the first to the last commit; nil if frame 1 does not open.
  ///
  /// The checksum that precedes frame 1 was in the header, so frame 1's checksum is not verified.
  init?(
    _ file: LockedInputFile, frameCount: Int, keys: FileKeys
  ) throws(SealedDatabaseError) {
    // The header also holds the bit for the byte order of the checksums, so both orders are tried.
    let found = [
      try translatingCryptoErrors(
        at: file.path, Self.follow(file, frameCount, keys, isBigEndian: false)),
      try translatingCryptoErrors(
        at: file.path, Self.follow(file, frameCount, keys, isBigEndian: true)),
    ]
    guard let longest = found.compactMap(\.self).max(by: { $0.frameCount < $1.frameCount }) else {
      return nil
    }
    self = longest
  }

  private static func follow(
    _ file: LockedInputFile, _ frameCount: Int, _ keys: FileKeys, isBigEndian: Bool
  ) throws(CryptoError) -> Self? {
    let frame = Scratch(byteCount: LogLayout.frameByteCount)
    let page = Scratch(byteCount: PageLayout.byteCount)
    var found = Self()
    var open: [UInt32: UInt32] = [:]
    var chain: FrameChain?
    var laterPages: Set<UInt32> = []
    var isBroken = false
    for number in 1...UInt32(clamping: max(1, frameCount)) {
      let offset = LogLayout.offset(ofFrame: number)
      guard unsafe file.read(frame.pointer, frame.byteCount, at: offset) else { break }
      if number == 1 {
        chain = try unsafe FrameChain(
          first: frame.pointer, at: offset, keys, isBigEndian: isBigEndian, page.pointer)
      } else if try unsafe chain?.decryptHeader(
        of: frame.pointer, at: offset, keys.frameHeader) != true
      {
        isBroken = true
        continue
      }
      guard chain != nil else { return nil }
      let header = unsafe UnsafeRawPointer(frame.pointer)
      if number > 1, !isBroken {
        isBroken = try unsafe chain?.accept(frame.pointer, page.pointer, keys.page) != true
      }
      if isBroken {
        unsafe laterPages.insert(header.bigEndianWord(at: 0))
        continue
      }
      unsafe open[header.bigEndianWord(at: 0)] = number
      let size = unsafe header.bigEndianWord(at: 4)
      if size != 0 {
        found.frames.merge(open) { $1 }
        open.removeAll(keepingCapacity: true)
        found.pageCount = size
        found.commitCount += 1
        found.frameCount = Int(number)
      }
    }
    laterPages.formUnion(open.keys)
    found.frames = found.frames.filter { !laterPages.contains($0.key) }
    return chain == nil ? nil : found
  }
}

extension SealedImage {
  /// The commits of another generation, if the database lacks the last copy of at least one page.
  func otherGeneration() throws(SealedDatabaseError) -> OtherGeneration? {
    let report = log.report
    guard report.state == .sealed, report.validFrameCount == 0, report.discardedTail == nil,
      let logFile,
      var found = try OtherGeneration(logFile, frameCount: report.frameCount, keys: keys)
    else { return nil }
    let frame = Scratch(byteCount: LogLayout.frameByteCount)
    let committed = Scratch(byteCount: PageLayout.byteCount)
    let held = Scratch(byteCount: PageLayout.byteCount)
    for (number, index) in found.frames where number <= found.pageCount {
      let isOpen = unsafe logFile.read(
        frame.pointer, frame.byteCount, at: LogLayout.offset(ofFrame: index))
      let sealed = unsafe frame.pointer + LogLayout.frameHeaderByteCount
      let isHeld =
        unsafe isOpen && open(sealed, number, keys.page, into: committed.pointer) == .whole
        && read(number, into: held.pointer) == .whole
        && memcmp(committed.pointer, held.pointer, PageLayout.byteCount) == 0
      if !isHeld { found.missingPageCount += 1 }
    }
    return found.missingPageCount > 0 ? found : nil
  }
}
