/// Where things lie in a sealed temporary file: `docs/sealed-database-format.md`, "Temporary files".
///
/// SQLite's temporary files have no pages: a sorter, a statement journal and a transient table read
/// and write any number of bytes anywhere. So they are sealed in blocks, with nonce and tag behind
/// each, and pages of 4096 bytes fall on blocks exactly.
enum TemporaryLayout {
  static let contentByteCount = 4096
  static let nonceOffset = contentByteCount
  static let tagOffset = nonceOffset + PageLayout.nonceByteCount
  static let blockByteCount = tagOffset + PageLayout.tagByteCount

  /// The role, and the block's number in eight bytes.
  static let additionalDataByteCount = 9

  /// Where a block lies on disk; blocks count from 0.
  static func offset(ofBlock number: Int64) -> Int64 { number * Int64(blockByteCount) }

  /// The block that holds a byte, and where in it.
  static func place(at offset: Int64) -> (block: Int64, within: Int) {
    let (block, within) = offset.quotientAndRemainder(dividingBy: Int64(contentByteCount))
    return (block, Int(within))
  }
}
