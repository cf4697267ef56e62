/// The name under which messages are published and received.
///
/// 1 to 255 bytes of UTF-8 without control characters, as output for people puts a name on a line
/// of its own. Two channels are the same if their names are the same bytes; there is no Unicode
/// normalisation.
public struct Channel: Sendable, Hashable, CustomStringConvertible {
  /// The largest name, in bytes.
  public static let maximumByteCount = Name.maximumByteCount

  /// The name as it was given.
  public let name: String

  /// Checks a name and makes a channel of it.
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

/// The name of a reader of a channel.
///
/// Each consumer gets all messages of the channel; receivers under the same consumer name divide
/// them. A consumer exists from its first receive on, or from
/// ``MessagingEngine/addConsumer(_:of:maximumAttempts:)``. It begins with the oldest message in the
/// log. Names are 1 to 255 bytes of UTF-8 without control characters.
public struct Consumer: Sendable, Hashable, CustomStringConvertible {
  /// The consumer that a call uses if it names none: `default`.
  public static let `default` = Consumer(stored: "default")

  /// The name as it was given.
  public let name: String

  /// Checks a name and makes a consumer of it.
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

/// The rules for the names of channels and consumers, ordering keys and deduplication ids: 1 to 255
/// bytes of UTF-8 without control characters, compared byte by byte.
enum Name {
  static let maximumByteCount = 255
  static let rule = "use 1 to \(maximumByteCount) bytes of UTF-8 without control characters"

  /// The fault in a name, as the end of a sentence; nil for a valid name.
  static func fault(in name: String) -> String? {
    let bytes = name.utf8
    if bytes.isEmpty { return "is empty" }
    if bytes.count > maximumByteCount { return "has \(bytes.count) bytes" }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "holds a control character" }
    return nil
  }
}
