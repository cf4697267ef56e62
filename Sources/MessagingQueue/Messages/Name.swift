/// The name under which messages are published and received.
///
/// 1 to 255 bytes of UTF-8 without control characters, as output for people puts a name on a line
/// of its own. Two channels are the same if their names are the same bytes; there is no Unicode
/// normalisation.
public struct Channel: Sendable, Hashable, CustomStringConvertible {
  /// The largest name, in bytes.
  public static let maximumByteCount = Name.maximumByteCount

  private let checked: Name

  /// The name as it was given.
  public var name: String { checked.text }

  /// Checks a name and makes a channel of it.
  ///
  /// - Throws: ``EngineError/Code/invalidChannel``.
  public init(_ name: String) throws(EngineError) {
    if let fault = Name.fault(in: name) {
      throw EngineError(.invalidChannel, "this channel name \(fault)", hint: Name.rule)
    }
    checked = Name(text: name)
  }

  /// A name that was checked when it was stored.
  init(stored name: String) {
    checked = Name(text: name)
  }

  /// Whether it is a channel of an application, named `application/channel`.
  package var isOfApplication: Bool { name.utf8.contains(UInt8(ascii: "/")) }

  /// The name before the first slash, with the slash; nil for a channel of no application.
  var applicationPrefix: String? {
    name.utf8.firstIndex(of: UInt8(ascii: "/")).map { String(name[...$0]) }
  }

  /// The number of which the channel's timetokens are multiples.
  ///
  /// A server gives the events of an application that are not stored the timetokens between its messages.
  package var timetokenStep: Int64 { isOfApplication ? Self.applicationStep : 1 }

  /// The step of an application's channels, and of all channels of a home that is one of several.
  static var applicationStep: Int64 { 100 }

  /// The name.
  public var description: String { name }
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

  private let checked: Name

  /// The name as it was given.
  public var name: String { checked.text }

  /// Checks a name and makes a consumer of it.
  ///
  /// - Throws: ``EngineError/Code/invalidArgument``.
  public init(_ name: String) throws(EngineError) {
    if let fault = Name.fault(in: name) {
      throw EngineError(.invalidArgument, "this consumer name \(fault)", hint: Name.rule)
    }
    checked = Name(text: name)
  }

  /// A name that was checked when it was stored.
  init(stored name: String) {
    checked = Name(text: name)
  }

  /// The name.
  public var description: String { name }
}

/// A name that is compared byte by byte, and the rules for the names of channels and consumers,
/// ordering keys and deduplication ids: 1 to 255 bytes of UTF-8 without control characters.
struct Name: Sendable, Hashable {
  let text: String

  static func == (a: Name, b: Name) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

  func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

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
