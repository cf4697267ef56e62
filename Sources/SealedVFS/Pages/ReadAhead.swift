internal import CSQLite
internal import Glibc

/// The next pages or frames of a file that SQLite reads from front to back, fetched in one call.
///
/// Sealed as they are on disk, and kept for no longer than SQLite may keep a page of its own: whoever
/// holds it forgets them at each change of a lock and at each write.
@safe struct ReadAhead: ~Copyable {
  private static let count: Int64 = 32
  /// So many in a row make a scan.
  private static let longEnough = 4

  /// The length of one of them, and where in the file the first one lies.
  private let byteCount: Int
  private let start: Int64

  private let memory: Scratch
  private var held: Range<Int64> = 0..<0
  private var next: Int64 = 0
  private var rowCount = 0

  init(of byteCount: Int, from start: Int64 = 0) {
    self.byteCount = byteCount
    self.start = start
    memory = Scratch(byteCount: Int(Self.count) * byteCount)
  }

  /// The one at that offset, if it is here or a scan that reaches it is worth reading ahead for.
  mutating func piece(at offset: Int64, of base: BaseFile) -> UnsafeRawPointer? {
    let index = (offset - start) / Int64(byteCount)
    if !held.contains(index) {
      rowCount = index == next ? rowCount + 1 : 0
      next = index + 1
      guard rowCount >= Self.longEnough else { return nil }
      guard unsafe base.read(memory.pointer, memory.byteCount, at: offset) == SQLITE_OK else {
        held = 0..<0
        rowCount = -Int(Self.count)  // the end of the file
        return nil
      }
      held = index..<index + Self.count
      next = held.upperBound
    }
    return unsafe UnsafeRawPointer(memory.pointer + Int(index - held.lowerBound) * byteCount)
  }

  /// Lets go of all of them: the file may have changed since.
  mutating func forget() {
    held = 0..<0
  }
}

/// Memory of a file's own for sealed and opened bytes, wiped when the file is closed.
///
/// Made once per file, so that no page costs an allocation.
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
