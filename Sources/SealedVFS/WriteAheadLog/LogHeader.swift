internal import Glibc
internal import VaultCrypto

/// The 32 bytes at the start of the log: `docs/reference/sealed-database-format.md`, "The write-ahead log".
///
/// On disk the version is 3007001, so that a stock SQLite refuses the log instead of deleting it.
/// The SQLite above this VFS sees 3007000. Each form has its own checksum.
enum LogHeader {
  static let versionOfSQLite: UInt32 = 3_007_000
  static let versionOnDisk: UInt32 = 3_007_001
  private static let magic: UInt32 = 0x377F_0682

  /// The kind of a header read from disk.
  enum Kind: Equatable {
    /// The header is torn, or the file is not a log: it holds nothing.
    case invalid
    /// A valid header with another version: the log is not sealed.
    case foreign
    case sealed
  }

  /// Changes the header from its form on disk to the form that SQLite sees.
  static func convertToSQLiteForm(_ header: UnsafeMutableRawPointer) -> Kind {
    let isWhole = unsafe isWhole(header)
    if unsafe isWhole && header.bigEndianWord(at: 4) != versionOnDisk {
      // This version makes SQLite refuse the log without changing it.
      unsafe setVersion(versionOnDisk, header)
      return .foreign
    }
    guard unsafe isWhole && header.bigEndianWord(at: 8) == UInt32(PageLayout.byteCount) else {
      unsafe memset(header, 0, LogLayout.headerByteCount)
      return .invalid
    }
    unsafe setVersion(versionOfSQLite, header)
    return .sealed
  }

  /// Changes the header from SQLite's form to the form on disk.
  ///
  /// - Returns: false if this format cannot hold the header.
  static func convertToDiskForm(_ header: UnsafeMutableRawPointer) -> Bool {
    guard
      unsafe isWhole(header) && header.bigEndianWord(at: 4) == versionOfSQLite
        && header.bigEndianWord(at: 8) == UInt32(PageLayout.byteCount)
    else { return false }
    unsafe setVersion(versionOnDisk, header)
    return true
  }

  private static func isWhole(_ header: UnsafeMutableRawPointer) -> Bool {
    guard unsafe header.bigEndianWord(at: 0) & ~1 == magic else { return false }
    let sum = unsafe checksum(header)
    return unsafe header.bigEndianWord(at: 24) == sum.0 && header.bigEndianWord(at: 28) == sum.1
  }

  private static func setVersion(_ version: UInt32, _ header: UnsafeMutableRawPointer) {
    unsafe header.storeBigEndian(version, at: 4)
    let sum = unsafe checksum(header)
    unsafe header.storeBigEndian(sum.0, at: 24)
    unsafe header.storeBigEndian(sum.1, at: 28)
  }

  /// The checksum over bytes 0..23; the magic's last bit gives the byte order of the words.
  private static func checksum(_ header: UnsafeRawPointer) -> (UInt32, UInt32) {
    let isBigEndian = unsafe header.bigEndianWord(at: 0) & 1 == 1
    return unsafe checksum(of: header, byteCount: 24, after: (0, 0), isBigEndian: isBigEndian)
  }

  /// SQLite's running checksum over pairs of words, for headers and frames.
  static func checksum(
    of bytes: UnsafeRawPointer, byteCount: Int, after sum: (UInt32, UInt32), isBigEndian: Bool
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

/// The offsets in a write-ahead log: <https://sqlite.org/fileformat2.html#walformat>.
enum LogLayout {
  static let headerByteCount = 32
  static let frameHeaderByteCount = 24
  static let frameByteCount = frameHeaderByteCount + PageLayout.byteCount

  /// The encrypted part of a frame header, its salts and checksum: one AES block.
  static let encryptedOffset = 8
  static let encryptedByteCount = AES256XTS.unitByteCount

  /// The offset of a frame; frames count from 1.
  static func offset(ofFrame number: some BinaryInteger) -> Int64 {
    Int64(headerByteCount) + (Int64(number) - 1) * Int64(frameByteCount)
  }

  /// The number of whole frames in a file of this length.
  static func frameCount(inFileOf byteCount: Int64) -> Int {
    Int(max(0, byteCount - Int64(headerByteCount)) / Int64(frameByteCount))
  }

  /// The frame that contains an offset, from 1, with the frame's offset and the offset in it.
  static func place(at offset: Int64) -> (frame: Int64, start: Int64, within: Int)? {
    guard offset >= Int64(headerByteCount) else { return nil }
    let (frame, within) = (offset - Int64(headerByteCount))
      .quotientAndRemainder(dividingBy: Int64(frameByteCount))
    return (frame + 1, offset - within, Int(within))
  }
}
