/// The name messages are published under and received from.
///
/// 1 to 255 bytes of UTF-8 without control characters: a name appears on a line of its own in
/// output for people. Two channels are the same if their names are the same bytes; no Unicode
/// normalisation is applied.
public struct Channel: Sendable, Hashable, CustomStringConvertible {
  /// The most bytes a name may have.
  public static let maximumByteCount = 255

  /// The name as it was given.
  public let name: String

  /// Checks a name.
  ///
  /// - Throws: ``EngineError/Code/invalidChannel``.
  public init(_ name: String) throws(EngineError) {
    if let fault = Self.fault(in: name) {
      throw EngineError(
        .invalidChannel, "this channel name \(fault)",
        hint: "use 1 to \(Self.maximumByteCount) bytes of UTF-8 without control characters")
    }
    self.name = name
  }

  /// A name that was checked when it was stored.
  init(stored name: String) {
    self.name = name
  }

  private static func fault(in name: String) -> String? {
    let bytes = name.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.count > maximumByteCount { return "has \(bytes.count) bytes" }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "holds a control character" }
    return nil
  }

  /// The name.
  public var description: String { name }

  /// Whether the names are the same bytes.
  public static func == (a: Channel, b: Channel) -> Bool {
    a.name.utf8.elementsEqual(b.name.utf8)
  }

  /// Hashes the bytes of the name.
  public func hash(into hasher: inout Hasher) {
    for byte in name.utf8 { hasher.combine(byte) }
  }
}
