/// The name of a consumer, a user or an item like these: 1 to 255 bytes of UTF-8 without control
/// characters.
///
/// Two names are the same if their bytes are the same; there is no Unicode normalisation. A grant
/// for one spelling of `é` does not reach the other, which is another channel of the engine.
public struct Name: Sendable, Hashable, CustomStringConvertible {
  /// The largest name, in bytes.
  public static let maximumByteCount = 255

  /// The name as it was given.
  public let text: String

  /// Checks a name.
  ///
  /// - Throws: `invalidName`.
  public init(_ text: String) throws(AccessError) {
    if let fault = Self.fault(in: text, maximumByteCount: Self.maximumByteCount) {
      throw AccessError(
        .invalidName, "this name \(fault)",
        hint: "use 1 to \(Self.maximumByteCount) bytes without control characters")
    }
    self.text = text
  }

  init(unchecked text: String) { self.text = text }

  /// The fault in a name, as the end of a sentence; nil for a valid name.
  static func fault(in text: String, maximumByteCount: Int) -> String? {
    let bytes = text.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.count > maximumByteCount { return "has \(bytes.count) bytes" }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "has a control character" }
    return nil
  }

  /// Whether the bytes are the same.
  public static func == (a: Name, b: Name) -> Bool {
    let left = a.text.utf8.span
    let right = b.text.utf8.span
    guard left.count == right.count else { return false }
    for offset in 0..<left.count where left[offset] != right[offset] { return false }
    return true
  }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    let bytes = text.utf8.span
    unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    hasher.combine(0xFF as UInt8)
  }

  /// The name.
  public var description: String { text }
}
