internal import CSQLite

/// The next pages of a file that SQLite reads from front to back, fetched in one call.
///
/// Sealed as they are on disk, and kept for no longer than SQLite may keep a page of its own: whoever
/// holds it forgets them at each change of a lock and at each write.
@safe struct ReadAhead: ~Copyable {
  private static let pageCount: UInt32 = 32
  /// So many pages in a row make a scan.
  private static let longEnough = 4

  private let memory = Scratch(byteCount: Int(pageCount) * PageLayout.byteCount)
  private var held: Range<UInt32> = 0..<0
  private var next: UInt32 = 0
  private var rowCount = 0

  /// The page, if it is here or a scan that reaches it is worth reading ahead for.
  mutating func page(_ number: UInt32, of base: BaseFile) -> UnsafeRawPointer? {
    if !held.contains(number) {
      rowCount = number == next ? rowCount + 1 : 0
      next = number &+ 1
      guard rowCount >= Self.longEnough, number <= .max - Self.pageCount else { return nil }
      guard fetch(from: number, of: base) else {
        rowCount = -Int(Self.pageCount)  // the end of the file
        return nil
      }
      next = held.upperBound
    }
    return unsafe UnsafeRawPointer(
      memory.pointer + Int(number - held.lowerBound) * PageLayout.byteCount)
  }

  private mutating func fetch(from number: UInt32, of base: BaseFile) -> Bool {
    let result = unsafe base.read(
      memory.pointer, memory.byteCount, at: PageLayout.offset(ofPage: number))
    held = result == SQLITE_OK ? number..<number + Self.pageCount : 0..<0
    return result == SQLITE_OK
  }

  /// Lets go of all pages: the file may have changed since.
  mutating func forget() {
    held = 0..<0
  }
}
