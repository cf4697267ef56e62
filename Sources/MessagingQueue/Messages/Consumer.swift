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
