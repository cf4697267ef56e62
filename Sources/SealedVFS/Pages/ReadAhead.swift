internal import Glibc

/// The next pages or frames of a file that SQLite reads in order, fetched in one call.
///
/// They are kept sealed, as on disk, and no longer than SQLite can keep a page of its own. The
/// owner discards them at each change of a lock and at each write.
@safe struct ReadAhead: ~Copyable {
  /// As many pieces as one call of "unix" can read.
  private let count: Int64
  /// The number of consecutive reads that make a scan.
  private static let scanLength = 4

  /// The length of one piece, and the offset of the first one in the file.
  private let byteCount: Int
  private let start: Int64

  private let memory: Scratch
  private var held: Range<Int64> = 0..<0
  private var next: Int64 = 0
  private var consecutiveCount = 0

  init(of byteCount: Int, from start: Int64 = 0) {
    self.byteCount = byteCount
    self.start = start
    count = Int64(BaseFile.maximumTransferByteCount / byteCount)
    memory = Scratch(byteCount: Int(count) * byteCount)
  }

  /// The piece at an offset, if it is in memory or the file is being read in order; nil otherwise.
  mutating func piece(at offset: Int64, of base: BaseFile) -> UnsafeRawPointer? {
    let index = (offset - start) / Int64(byteCount)
    if !held.contains(index) {
      consecutiveCount = index == next ? consecutiveCount + 1 : 0
      next = index + 1
      guard consecutiveCount >= Self.scanLength else { return nil }
      do throws(ResultCode) {
        try unsafe base.read(memory.pointer, memory.byteCount, at: offset)
      } catch {
        // The end of the file, or a failure: the caller reads this piece alone and reports the error.
        held = 0..<0
        consecutiveCount = -Int(count)
        return nil
      }
      held = index..<index + count
      next = held.upperBound
    }
    return unsafe UnsafeRawPointer(memory.pointer + Int(index - held.lowerBound) * byteCount)
  }

  /// Discards all pieces, because the file could have changed.
  mutating func forget() {
    held = 0..<0
  }
}

/// A buffer of one file for sealed and opened bytes, wiped when the file is closed.
///
/// It is allocated once for each file, so that reading a page allocates nothing.
@safe struct Scratch: ~Copyable {
  let pointer: UnsafeMutableRawPointer
  let byteCount: Int

  init(byteCount: Int) {
    unsafe pointer = .allocate(byteCount: byteCount, alignment: 64)
    self.byteCount = byteCount
    unsafe memset(pointer, 0, byteCount)
  }

  deinit {
    unsafe explicit_bzero(pointer, byteCount)
    unsafe pointer.deallocate()
  }

  /// A part of the memory, read-only.
  func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: pointer + range.lowerBound, count: range.count)
  }
}
