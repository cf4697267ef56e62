internal import CSQLite
internal import Glibc
internal import Synchronization
internal import VaultCrypto

/// A temporary file of SQLite's, which lives no longer than its connection.
///
/// Sorters, statement journals, temporary and transient tables use such files, and so does `VACUUM`
/// for its copy. SQLite opens them without a name, so that no key can be looked up. Each gets a
/// random key, and only this object can read it. One block is kept open between calls, so that
/// consecutive small writes are sealed only once. A file that fits in one block never reaches the
/// disk.
///
/// A sorter with worker threads passes files between threads: a mutex protects each call.
final class TemporaryFile: OpenFile {
  private let mutex = Mutex(())
  /// The cipher, made when the first block goes to disk.
  private var cipher: TemporaryCipher?
  private let sealed = Scratch(byteCount: TemporaryLayout.blockByteCount)
  private let content = Scratch(byteCount: TemporaryLayout.contentByteCount)
  /// The number of the block in ``content``, and whether it is newer than the block on disk.
  private var current: (block: Int64, isChanged: Bool)?
  private var written = WrittenBlocks()
  /// The size of the file as SQLite knows it.
  private var logicalByteCount: Int64 = 0

  /// SQLite's flags for temporary files in xOpen: <https://sqlite.org/c3ref/c_open_autoproxy.html>.
  static let openFlags =
    SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL
    | SQLITE_OPEN_SUBJOURNAL

  override func read(
    _ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    try mutex.withLock { (_) throws(ResultCode) in
      let available = Int(max(0, min(Int64(byteCount), logicalByteCount - offset)))
      if available < byteCount {
        unsafe memset(target + available, 0, byteCount - available)
      }
      var done = 0
      while done < available {
        let (block, within) = TemporaryLayout.place(at: offset + Int64(done))
        let count = min(available - done, TemporaryLayout.contentByteCount - within)
        try unsafe readPart(of: block, from: within, count, into: target + done)
        done += count
      }
      if available < byteCount { throw ResultCode(SQLITE_IOERR_SHORT_READ) }
    }
  }

  override func write(
    _ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int64
  ) throws(ResultCode) {
    try mutex.withLock { (_) throws(ResultCode) in
      var done = 0
      while done < byteCount {
        let (block, within) = TemporaryLayout.place(at: offset + Int64(done))
        let count = min(byteCount - done, TemporaryLayout.contentByteCount - within)
        try unsafe writePart(of: block, from: within, count, from: source + done)
        done += count
      }
      logicalByteCount = max(logicalByteCount, offset + Int64(byteCount))
    }
  }

  override func truncate(to byteCount: Int64) throws(ResultCode) {
    try mutex.withLock { (_) throws(ResultCode) in
      guard byteCount < logicalByteCount else { return }
      let (block, within) = TemporaryLayout.place(at: byteCount)
      if let current, current.block > block || current.block == block && within == 0 {
        self.current = nil
      }
      if within > 0 {
        // The removed bytes must not reappear when the file grows again.
        try load(block)
        unsafe memset(
          content.pointer + within, 0, TemporaryLayout.contentByteCount - within)
        current?.isChanged = true
      }
      let keptBlockCount = within > 0 ? block + 1 : block
      written.removeAll(from: keptBlockCount)
      logicalByteCount = byteCount
      try base.truncate(to: TemporaryLayout.offset(ofBlock: keptBlockCount))
    }
  }

  /// Does nothing: after a power cut no key exists for the file.
  override func synchronize(_ flags: Int32) {}

  override func byteCount() -> Int64 { mutex.withLock { _ in logicalByteCount } }

  private func readPart(
    of block: Int64, from within: Int, _ count: Int, into target: UnsafeMutableRawPointer
  ) throws(ResultCode) {
    if count == TemporaryLayout.contentByteCount && current?.block != block {
      return try unsafe open(block, into: target)
    }
    try load(block)
    unsafe target.copyMemory(from: content.pointer + within, byteCount: count)
  }

  private func writePart(
    of block: Int64, from within: Int, _ count: Int, from source: UnsafeRawPointer
  ) throws(ResultCode) {
    if count == TemporaryLayout.contentByteCount {
      if current?.block == block { current = nil }
      return try unsafe seal(source, as: block)
    }
    try load(block)
    unsafe (content.pointer + within).copyMemory(from: source, byteCount: count)
    current?.isChanged = true
  }

  /// Brings a block into ``content``, after writing the changed block that is there to disk.
  private func load(_ block: Int64) throws(ResultCode) {
    if let current {
      if current.block == block { return }
      if current.isChanged { try unsafe seal(content.pointer, as: current.block) }
      self.current = nil
    }
    try unsafe open(block, into: content.pointer)
    current = (block, false)
  }

  private func open(_ block: Int64, into target: UnsafeMutableRawPointer) throws(ResultCode) {
    guard written.contains(block), let cipher else {
      unsafe memset(target, 0, TemporaryLayout.contentByteCount)
      return
    }
    do throws(ResultCode) {
      try unsafe base.read(
        sealed.pointer, TemporaryLayout.blockByteCount,
        at: TemporaryLayout.offset(ofBlock: block))
    } catch  where error.isShortRead {
      throw ResultCode(SQLITE_IOERR_DATA)  // a written block is missing: that is damage
    }
    let isWhole = try unsafe ResultCode.translatingCryptoErrors(
      cipher.open(sealed.pointer, block: block, into: target))
    guard isWhole else { throw ResultCode(SQLITE_IOERR_DATA) }
  }

  private func seal(_ source: UnsafeRawPointer, as block: Int64) throws(ResultCode) {
    let cipher =
      if let known = self.cipher { known } else {
        try ResultCode.translatingCryptoErrors(TemporaryCipher())
      }
    self.cipher = cipher
    try unsafe ResultCode.translatingCryptoErrors(
      cipher.seal(source, block: block, into: sealed.pointer))
    try unsafe base.write(
      sealed.pointer, TemporaryLayout.blockByteCount,
      at: TemporaryLayout.offset(ofBlock: block))
    written.insert(block)
  }
}

/// The blocks of a temporary file that have been written: one bit each, 32 KiB for each GiB.
///
/// A block that was never written is a hole and reads as zeros, as in any file. This set
/// distinguishes a hole from a block that someone overwrote with zeros.
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

  /// Removes all blocks from `block` on.
  mutating func removeAll(from block: Int64) {
    let (word, bit) = Int(block).quotientAndRemainder(dividingBy: 64)
    guard word < words.count else { return }
    words.removeSubrange((word + 1)...)
    words[word] &= (1 << UInt64(bit)) - 1
  }
}
