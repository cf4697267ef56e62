internal import VaultCrypto

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
