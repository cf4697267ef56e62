internal import VaultCrypto

/// The chain of salts and running checksum that links the frames of a log:
/// <https://sqlite.org/fileformat2.html#walformat>.
struct FrameChain {
  private let salts: UInt64
  private let isBigEndian: Bool
  private var sum: (UInt32, UInt32)

  /// Begins at a decoded log header.
  init(header: UnsafeMutableRawPointer) {
    unsafe isBigEndian = header.bigEndianWord(at: 0) & 1 == 1
    unsafe salts = header.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    unsafe sum = (header.bigEndianWord(at: 24), header.bigEndianWord(at: 28))
  }

  /// Begins at a frame and ignores the log's header; nil if the frame's page does not open.
  init?(
    first frame: UnsafeMutableRawPointer, at offset: Int64, _ keys: FileKeys, isBigEndian: Bool,
    _ page: UnsafeMutableRawPointer
  ) throws(CryptoError) {
    let number = unsafe frame.bigEndianWord(at: 0)
    try unsafe Self.decrypt(frame, at: offset, keys.frameHeader)
    guard number != 0,
      try unsafe keys.page.open(frame + LogLayout.frameHeaderByteCount, number: number, into: page)
    else { return nil }
    self.isBigEndian = isBigEndian
    unsafe salts = frame.loadUnaligned(fromByteOffset: LogLayout.encryptedOffset, as: UInt64.self)
    unsafe sum = (frame.bigEndianWord(at: 16), frame.bigEndianWord(at: 20))
  }

  /// Decrypts a frame's header in place.
  ///
  /// - Returns: whether the frame belongs to this generation.
  func decryptHeader(
    of frame: UnsafeMutableRawPointer, at offset: Int64, _ cipher: AES256XTS
  ) throws(CryptoError) -> Bool {
    try unsafe Self.decrypt(frame, at: offset, cipher)
    return unsafe frame.loadUnaligned(fromByteOffset: LogLayout.encryptedOffset, as: UInt64.self)
      == salts
  }

  /// Decrypts a frame's header in place.
  static func decrypt(
    _ frame: UnsafeMutableRawPointer, at offset: Int64, _ cipher: AES256XTS
  ) throws(CryptoError) {
    try unsafe cipher.decrypt(frame + LogLayout.encryptedOffset, tweak: UInt64(offset))
  }

  /// Whether a frame of this generation comes next: its page opens and its checksum is right.
  mutating func accept(
    _ frame: UnsafeMutableRawPointer, _ page: UnsafeMutableRawPointer, _ cipher: PageCipher
  ) throws(CryptoError) -> Bool {
    let number = unsafe frame.bigEndianWord(at: 0)
    guard number != 0,
      try unsafe cipher.open(frame + LogLayout.frameHeaderByteCount, number: number, into: page)
    else { return false }
    return unsafe follow(frame, page)
  }

  /// Whether the checksum of a frame, header and page opened, follows from the frame before.
  mutating func follow(_ header: UnsafeRawPointer, _ page: UnsafeRawPointer) -> Bool {
    var next = unsafe continued(sum, header, LogLayout.encryptedOffset)
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
    let first = Scratch(byteCount: LogLayout.encryptedOffset)
    func sum(withCommitSize word: UInt32) -> (UInt32, UInt32) {
      unsafe first.pointer.copyMemory(from: header, byteCount: 4)
      unsafe first.pointer.storeBigEndian(isBigEndian ? word : word.byteSwapped, at: 4)
      let next = unsafe continued(self.sum, first.pointer, LogLayout.encryptedOffset)
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
    unsafe LogHeader.checksum(
      of: bytes, byteCount: byteCount, after: sum, isBigEndian: isBigEndian)
  }
}
