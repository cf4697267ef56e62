/// Decides whether a message is a repetition, the same on every node.
package enum DeduplicationRule {
  /// How long an id is known by default, in units of 100 ns: an hour.
  package static let window: Int64 = 36_000_000_000

  /// - Parameters:
  ///   - earlier: the timetoken of the message that was stored with this id; nil if none was.
  ///   - next: the timetoken that the message would get. No clock of a node decides, as they differ.
  package static func isRepetition(of earlier: Int64?, next: Int64, window: Int64 = window) -> Bool
  {
    guard let earlier else { return false }
    return next - earlier <= window
  }
}
