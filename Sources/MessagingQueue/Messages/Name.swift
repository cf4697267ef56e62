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

/// One of the readers that share the work of a channel, or each do their own with all of it.
///
/// Receivers under the same name divide the messages among them; every name gets all of them. A
/// consumer exists from its first receive on, or from ``MessagingEngine/addConsumer(_:of:maximumAttempts:)``,
/// and begins with the oldest message that is there then. Names are 1 to 255 bytes of UTF-8 without
/// control characters.
public struct Consumer: Sendable, Hashable, CustomStringConvertible {
  /// The one that is meant where none is named: `default`.
  public static let `default` = Consumer(stored: "default")

  /// The name as it was given.
  public let name: String

  /// Checks a name.
  ///
  /// - Throws: ``EngineError/Code/invalidArgument``.
  public init(_ name: String) throws(EngineError) {
    if let fault = Name.fault(in: name) {
      throw EngineError(.invalidArgument, "this consumer name \(fault)", hint: Name.rule)
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
  public static func == (a: Consumer, b: Consumer) -> Bool {
    a.name.utf8.elementsEqual(b.name.utf8)
  }

  /// Hashes the bytes of the name.
  public func hash(into hasher: inout Hasher) {
    for byte in name.utf8 { hasher.combine(byte) }
  }
}

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
