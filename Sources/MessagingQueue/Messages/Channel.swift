/// The name messages are published under and received from.
///
/// 1 to 255 bytes of UTF-8 without control characters: a name appears on a line of its own in
/// output for people. Two channels are the same if their names are the same bytes; no Unicode
/// normalisation is applied.
public struct Channel: Sendable, Hashable, CustomStringConvertible {
  /// The most bytes a name may have.
  public static let maximumByteCount = Name.maximumByteCount

  /// The name as it was given.
  public let name: String

  /// Checks a name.
  ///
  /// - Throws: ``EngineError/Code/invalidChannel``.
  public init(_ name: String) throws(EngineError) {
    if let fault = Name.fault(in: name) {
      throw EngineError(.invalidChannel, "this channel name \(fault)", hint: Name.rule)
    }
    self.name = name
  }

  /// A name that was checked when it was stored.
  init(stored name: String) {
    self.name = name
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
