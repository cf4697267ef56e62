internal import Glibc
internal import VaultCrypto

/// The 32 bytes at the start of the log: `docs/reference/sealed-database-format.md`, "The write-ahead log".
///
/// On disk the version is 3007001, so that a stock SQLite refuses the log instead of deleting it;
/// SQLite beside us sees 3007000. Each form has its own checksum.
enum LogHeader {
  static let versionOfSQLite: UInt32 = 3_007_000
  static let versionOnDisk: UInt32 = 3_007_001
  private static let magic: UInt32 = 0x377F_0682

  /// What a header read from disk is.
  enum Kind: Equatable {
    /// Torn, or not a log at all: it holds nothing.
    case invalid
    /// A log that is whole but not a sealed one.
    case foreign
    case sealed
  }

  /// Turns the header as it is on disk into the one that SQLite is shown.
  static func reveal(_ header: UnsafeMutableRawPointer) -> Kind {
    guard unsafe isWhole(header) else {
      unsafe memset(header, 0, LogLayout.headerByteCount)
      return .invalid
    }
    guard unsafe UnsafeRawPointer(header).bigEndianWord(at: 4) == versionOnDisk else {
      // Shown with a version that SQLite refuses without touching the log.
      unsafe setVersion(versionOnDisk, header)
      return .foreign
    }
    guard unsafe UnsafeRawPointer(header).bigEndianWord(at: 8) == UInt32(PageLayout.byteCount)
    else {
      unsafe memset(header, 0, LogLayout.headerByteCount)
      return .invalid
    }
    unsafe setVersion(versionOfSQLite, header)
    return .sealed
  }

  /// Turns SQLite's header into the one for the disk.
  ///
  /// - Returns: false for a header that this format cannot hold.
  static func conceal(_ header: UnsafeMutableRawPointer) -> Bool {
    guard unsafe isWhole(header),
      unsafe UnsafeRawPointer(header).bigEndianWord(at: 4) == versionOfSQLite,
      unsafe UnsafeRawPointer(header).bigEndianWord(at: 8) == UInt32(PageLayout.byteCount)
    else { return false }
    unsafe setVersion(versionOnDisk, header)
    return true
  }

  private static func isWhole(_ header: UnsafeMutableRawPointer) -> Bool {
    let bytes = UnsafeRawPointer(header)
    guard unsafe bytes.bigEndianWord(at: 0) & ~1 == magic else { return false }
    let sum = unsafe checksum(header)
    return unsafe bytes.bigEndianWord(at: 24) == sum.0 && bytes.bigEndianWord(at: 28) == sum.1
  }

  private static func setVersion(_ version: UInt32, _ header: UnsafeMutableRawPointer) {
    unsafe header.storeBigEndian(version, at: 4)
    let sum = unsafe checksum(header)
    unsafe header.storeBigEndian(sum.0, at: 24)
    unsafe header.storeBigEndian(sum.1, at: 28)
  }

  /// SQLite's checksum over bytes 0..23; the magic's last bit says how it reads words.
  private static func checksum(_ header: UnsafeMutableRawPointer) -> (UInt32, UInt32) {
    let bytes = UnsafeRawPointer(header)
    let isBigEndian = unsafe bytes.bigEndianWord(at: 0) & 1 == 1
    var sum: (UInt32, UInt32) = (0, 0)
    for offset in stride(from: 0, to: 24, by: 8) {
      let first = unsafe bytes.bigEndianWord(at: offset)
      let second = unsafe bytes.bigEndianWord(at: offset + 4)
      sum.0 &+= (isBigEndian ? first : first.byteSwapped) &+ sum.1
      sum.1 &+= (isBigEndian ? second : second.byteSwapped) &+ sum.0
    }
    return sum
  }
}

/// Where things lie in a write-ahead log: <https://sqlite.org/fileformat2.html#walformat>.
enum LogLayout {
  static let headerByteCount = 32
  static let frameHeaderByteCount = 24
  static let frameByteCount = frameHeaderByteCount + PageLayout.byteCount

  /// Salts and checksum of a frame header: one AES block.
  static let hiddenOffset = 8
  static let hiddenByteCount = AES256XTS.unitByteCount

  /// Whole frames in a file of so many bytes.
  static func frameCount(inFileOf byteCount: Int64) -> Int {
    Int(max(0, byteCount - Int64(headerByteCount)) / Int64(frameByteCount))
  }

  /// A place in the log: the frame it lies in, from 1, and the offset in that frame.
  static func place(at offset: Int64) -> (frame: Int64, start: Int64, within: Int)? {
    guard offset >= Int64(headerByteCount) else { return nil }
    let (frame, within) = (offset - Int64(headerByteCount))
      .quotientAndRemainder(dividingBy: Int64(frameByteCount))
    return (frame + 1, offset - within, Int(within))
  }
}
