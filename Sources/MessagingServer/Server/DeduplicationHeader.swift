internal import MessagingQueue

/// The headers of all protocols by which a publication is repeated without doubling it:
/// docs/reference/deduplication.md.
enum DeduplicationHeader {
  /// Of a publication: its id.
  static let id = "\(MessageNotes.prefix)deduplication-id"
  /// Of the server: for how many seconds it knows ids.
  static let window = "\(MessageNotes.prefix)deduplication-window"

  static let seconds = EngineConfiguration().deduplicationWindow.components.seconds
  /// The longest id, in bytes.
  static let maximumByteCount = 128

  /// A header that is there more than once, or is no id.
  struct Fault: Error {
    /// For people.
    let message = "\(DeduplicationHeader.id) is not one text of 1 to 128 visible ASCII characters"
  }

  /// The id of a publication; nil if it has none.
  ///
  /// - Parameter values: of all headers of the name.
  static func id(of values: [String]) throws(Fault) -> String? {
    guard let first = values.first else { return nil }
    guard values.count == 1, (1...maximumByteCount).contains(first.utf8.count),
      first.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw Fault() }
    return first
  }
}
