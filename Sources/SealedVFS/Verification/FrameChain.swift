internal import CSQLite
internal import Glibc
internal import VaultCrypto

/// What makes a frame of the log follow the one before: salts and running checksum, see
/// <https://sqlite.org/fileformat2.html#walformat>.
struct FrameChain {
  private let salts: UInt64
  private let isBigEndian: Bool
  private var sum: (UInt32, UInt32)

  /// Begins at a log header as SQLite knows it.
  init(header: UnsafeMutableRawPointer) {
    let bytes = UnsafeRawPointer(header)
    unsafe isBigEndian = bytes.bigEndianWord(at: 0) & 1 == 1
    unsafe salts = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    unsafe sum = (bytes.bigEndianWord(at: 24), bytes.bigEndianWord(at: 28))
  }

  /// Begins with a frame, whatever the log's header says; nil where its page does not open.
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
  /// - Returns: whether it belongs to this generation.
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

  /// Whether a frame of this generation is the next one: its page opens and its checksum is right.
  mutating func accept(
    _ frame: UnsafeMutableRawPointer, _ page: UnsafeMutableRawPointer, _ cipher: PageCipher
  ) -> Bool {
    let header = UnsafeRawPointer(frame)
    let number = unsafe header.bigEndianWord(at: 0)
    guard number != 0,
      unsafe cipher.open(frame + LogLayout.frameHeaderByteCount, number: number, into: page)
    else { return false }
    var next = unsafe continued(sum, header, LogLayout.hiddenOffset)
    next = unsafe continued(next, UnsafeRawPointer(page), PageLayout.byteCount)
    guard unsafe next == (header.bigEndianWord(at: 16), header.bigEndianWord(at: 20)) else {
      return false
    }
    sum = next
    return true
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
