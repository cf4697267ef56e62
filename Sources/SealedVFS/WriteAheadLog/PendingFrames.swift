internal import Glibc

/// Frames of the running transaction that SQLite has written and the log has not got yet, one after
/// the other as they will lie there.
///
/// They reach the file together, at the latest with the frame that commits. Until then nobody else can
/// want them: what ends them is in ``LogFile``.
@safe struct PendingFrames: ~Copyable {
  /// More would gain nothing; 32 would be too many for one call, as `seekAndWriteFd` of os_unix.c keeps
  /// the low 17 bits of a length.
  private static let mostFrames = 16

  private let memory = Scratch(byteCount: mostFrames * LogLayout.frameByteCount)
  private(set) var start: Int64 = 0
  private(set) var byteCount = 0

  /// The page whose frame has its header and not yet its contents.
  private(set) var begun: (page: UInt32, commits: Bool)?

  var pointer: UnsafeMutableRawPointer { unsafe memory.pointer }
  var isEmpty: Bool { byteCount == 0 }
  private var isFull: Bool { byteCount == memory.byteCount }

  /// Where the next piece lies in the log.
  var end: Int64 { start + Int64(byteCount) }

  /// Whether they are to be written now: the transaction commits, or there is no room.
  private(set) var areDue = false

  /// Whether a frame that begins there follows.
  func canBegin(at offset: Int64) -> Bool {
    isEmpty || (begun == nil && offset == end && !isFull)
  }

  /// Begins a frame with a header of SQLite's, and returns its place in memory.
  mutating func begin(at offset: Int64, header: UnsafeRawPointer) -> UnsafeMutableRawPointer {
    if isEmpty { start = offset }
    let target = unsafe pointer + byteCount
    unsafe target.copyMemory(from: header, byteCount: LogLayout.frameHeaderByteCount)
    unsafe begun = (header.bigEndianWord(at: 0), header.bigEndianWord(at: 4) != 0)
    byteCount += LogLayout.frameHeaderByteCount
    return unsafe target
  }

  /// Where the sealed page of the frame begun goes; ``finish()`` says that it is there.
  var room: UnsafeMutableRawPointer { unsafe pointer + byteCount }

  mutating func finish() {
    byteCount += PageLayout.byteCount
    areDue = begun?.commits == true || isFull
    begun = nil
  }

  /// Takes out the frame that was finished last.
  mutating func removeLast() {
    byteCount -= LogLayout.frameByteCount
    areDue = false
  }

  mutating func removeAll() {
    byteCount = 0
    begun = nil
    areDue = false
  }
}
