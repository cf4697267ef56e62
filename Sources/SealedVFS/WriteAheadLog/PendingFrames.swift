/// Consecutive frames of the running transaction that SQLite has written and the log does not have
/// yet.
///
/// They reach the file together, at the latest with the frame that commits. Until then no other
/// connection can need them. ``LogFile`` decides when they are written or discarded.
@safe struct PendingFrames: ~Copyable {
  /// More frames gain nothing, and 32 are too many for one call: `seekAndWriteFd` of os_unix.c
  /// keeps the low 17 bits of a length.
  private static let maximumFrameCount = 16

  private let memory = Scratch(byteCount: maximumFrameCount * LogLayout.frameByteCount)
  private(set) var start: Int64 = 0
  private(set) var byteCount = 0

  /// The page of the frame that has its header but not yet its contents.
  private(set) var begun: (page: UInt32, commits: Bool)?

  var pointer: UnsafeMutableRawPointer { unsafe memory.pointer }
  var isEmpty: Bool { byteCount == 0 }
  private var isFull: Bool { byteCount == memory.byteCount }

  /// The offset in the log of the next piece.
  var end: Int64 { start + Int64(byteCount) }

  /// Whether the frames must be written now: the transaction commits, or the buffer is full.
  private(set) var areDue = false

  /// Whether a frame at this offset can be added.
  func canBegin(at offset: Int64) -> Bool {
    isEmpty || (begun == nil && offset == end && !isFull)
  }

  /// Begins a frame with a header of SQLite's, and returns the header's copy in memory.
  mutating func begin(at offset: Int64, header: UnsafeRawPointer) -> UnsafeMutableRawPointer {
    if isEmpty { start = offset }
    let target = unsafe pointer + byteCount
    unsafe target.copyMemory(from: header, byteCount: LogLayout.frameHeaderByteCount)
    unsafe begun = (header.bigEndianWord(at: 0), header.bigEndianWord(at: 4) != 0)
    byteCount += LogLayout.frameHeaderByteCount
    return unsafe target
  }

  /// The memory for the sealed page of the frame that was begun; call ``finish()`` after writing
  /// it.
  var room: UnsafeMutableRawPointer { unsafe pointer + byteCount }

  mutating func finish() {
    byteCount += PageLayout.byteCount
    areDue = begun?.commits == true || isFull
    begun = nil
  }

  /// Removes the frame that was finished last.
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
