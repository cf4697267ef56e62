/// What the names of channels and consumers, ordering keys and deduplication ids have in common: 1 to
/// 255 bytes of UTF-8 without control characters, compared byte by byte.
enum Name {
  static let maximumByteCount = 255
  static let rule = "use 1 to \(maximumByteCount) bytes of UTF-8 without control characters"

  /// What is wrong with a name, as the end of a sentence about it.
  static func fault(in name: String) -> String? {
    let bytes = name.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.count > maximumByteCount { return "has \(bytes.count) bytes" }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "holds a control character" }
    return nil
  }
}
