internal import CSQLite
internal import Glibc
internal import Synchronization
internal import VaultCrypto

/// A file of SQLite's own that lives no longer than its connection: sorters, statement journals,
/// temporary and transient tables, the copy that `VACUUM` makes.
///
/// SQLite opens them without a name, so that no key can be looked up: each gets a random one, and
/// only this object can ever read it. One block is kept open between calls, so that small writes in
/// a row are sealed once; a file that fits in one block never reaches the disk.
///
/// A sorter with worker threads hands files from thread to thread: a mutex covers each call.
final class TemporaryFile: OpenFile {
  private let mutex = Mutex(())
  /// Made when the first block goes to disk.
  private var cipher: TemporaryCipher?
  private let sealed = Scratch(byteCount: TemporaryLayout.blockByteCount)
  private let content = Scratch(byteCount: TemporaryLayout.contentByteCount)
  /// The block in ``content``, and whether it is newer than on disk.
  private var current: (block: Int64, isChanged: Bool)?
  private var written = WrittenBlocks()
  /// SQLite's idea of the file's size.
  private var byteCount: Int64 = 0

  /// What SQLite calls its temporary files in xOpen: <https://sqlite.org/c3ref/c_open_autoproxy.html>.
  static let openFlags =
    SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL
    | SQLITE_OPEN_SUBJOURNAL

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) -> Int32 {
    mutex.withLock { _ in
      let available = Int(max(0, min(Int64(byteCount), self.byteCount - offset)))
      if available < byteCount {
        unsafe memset(target + available, 0, byteCount - available)
      }
      var done = 0
      while done < available {
        let (block, within) = TemporaryLayout.place(at: offset + Int64(done))
        let count = min(available - done, TemporaryLayout.contentByteCount - within)
        let result = unsafe readPart(of: block, from: within, count, into: target + done)
        guard result == SQLITE_OK else { return result }
        done += count
      }
      return available < byteCount ? SQLITE_IOERR_SHORT_READ : SQLITE_OK
    }
  }

  override func write(_ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64) -> Int32 {
    mutex.withLock { _ in
      var done = 0
      while done < byteCount {
        let (block, within) = TemporaryLayout.place(at: offset + Int64(done))
        let count = min(byteCount - done, TemporaryLayout.contentByteCount - within)
        let result = unsafe writePart(of: block, from: within, count, from: source + done)
        guard result == SQLITE_OK else { return result }
        done += count
      }
      self.byteCount = max(self.byteCount, offset + Int64(byteCount))
      return SQLITE_OK
    }
  }

  override func truncate(to byteCount: Int64) -> Int32 {
    mutex.withLock { _ in
      guard byteCount < self.byteCount else { return SQLITE_OK }
      let (block, within) = TemporaryLayout.place(at: byteCount)
      if let current, current.block > block || current.block == block && within == 0 {
        self.current = nil
      }
      if within > 0 {
        // What was cut off must not come back when the file grows again.
        let result = load(block)
        guard result == SQLITE_OK else { return result }
        unsafe memset(
          content.pointer + within, 0, TemporaryLayout.contentByteCount - within)
        current?.isChanged = true
      }
      let keptBlockCount = within > 0 ? block + 1 : block
      written.removeAll(from: keptBlockCount)
      self.byteCount = byteCount
      return base.truncate(to: TemporaryLayout.offset(ofBlock: keptBlockCount))
    }
  }

  /// Nothing: who would read the file after a power cut has no key.
  override func synchronize(_ flags: Int32) -> Int32 { SQLITE_OK }

  override func byteCount(_ target: UnsafeMutablePointer<Int64>) -> Int32 {
    mutex.withLock { _ in
      unsafe target.pointee = byteCount
      return SQLITE_OK
    }
  }

  private func readPart(
    of block: Int64, from within: Int, _ count: Int, into target: UnsafeMutableRawPointer
  ) -> Int32 {
    if count == TemporaryLayout.contentByteCount && current?.block != block {
      return unsafe open(block, into: target)
    }
    let result = load(block)
    guard result == SQLITE_OK else { return result }
    unsafe target.copyMemory(from: content.pointer + within, byteCount: count)
    return SQLITE_OK
  }

  private func writePart(
    of block: Int64, from within: Int, _ count: Int, from source: UnsafeRawPointer
  ) -> Int32 {
    if count == TemporaryLayout.contentByteCount {
      if current?.block == block { current = nil }
      return unsafe seal(source, as: block)
    }
    let result = load(block)
    guard result == SQLITE_OK else { return result }
    unsafe (content.pointer + within).copyMemory(from: source, byteCount: count)
    current?.isChanged = true
    return SQLITE_OK
  }

  /// Brings a block into ``content``, after the one that is there went to disk.
  private func load(_ block: Int64) -> Int32 {
    if let current {
      if current.block == block { return SQLITE_OK }
      if current.isChanged {
        let result = unsafe seal(content.pointer, as: current.block)
        guard result == SQLITE_OK else { return result }
      }
      self.current = nil
    }
    let result = unsafe open(block, into: content.pointer)
    if result == SQLITE_OK { current = (block, false) }
    return result
  }

  private func open(_ block: Int64, into target: UnsafeMutableRawPointer) -> Int32 {
    guard written.contains(block), let cipher else {
      unsafe memset(target, 0, TemporaryLayout.contentByteCount)
      return SQLITE_OK
    }
    let result = unsafe base.read(
      sealed.pointer, TemporaryLayout.blockByteCount,
      at: TemporaryLayout.offset(ofBlock: block))
    guard result == SQLITE_OK else {
      // A block that was written and is not there is no end of the file.
      return result == SQLITE_IOERR_SHORT_READ ? SQLITE_IOERR_DATA : result
    }
    guard unsafe cipher.open(sealed.pointer, block: block, into: target) else {
      return SQLITE_IOERR_DATA
    }
    return SQLITE_OK
  }

  private func seal(_ source: UnsafeRawPointer, as block: Int64) -> Int32 {
    if cipher == nil { cipher = try? TemporaryCipher() }
    guard let cipher, unsafe cipher.seal(source, block: block, into: sealed.pointer) else {
      return SQLITE_IOERR_WRITE
    }
    let result = unsafe base.write(
      sealed.pointer, TemporaryLayout.blockByteCount,
      at: TemporaryLayout.offset(ofBlock: block))
    if result == SQLITE_OK { written.insert(block) }
    return result
  }
}

/// Which blocks of a temporary file were ever written: a bit each, 32 KiB for each GiB.
///
/// A block that was not is a hole and reads as zeros, as in any file. Without this a block that
/// someone overwrote with zeros could not be told from one.
struct WrittenBlocks {
  private var words: [UInt64] = []

  func contains(_ block: Int64) -> Bool {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    return word < words.count && words[word] & 1 << UInt64(bit) != 0
  }

  mutating func insert(_ block: Int64) {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    if word >= words.count {
      words.append(contentsOf: repeatElement(0, count: word + 1 - words.count))
    }
    words[word] |= 1 << UInt64(bit)
  }

  /// Forgets the blocks from `block` on.
  mutating func removeAll(from block: Int64) {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    guard word < words.count else { return }
    words.removeSubrange((word + 1)...)
    words[word] &= (1 << UInt64(bit)) - 1
  }
}
