/// The number of cases with each outcome, compared with expected numbers so that an empty run
/// fails.
struct VectorCounts: Equatable, CustomStringConvertible {
  /// Cases that were accepted with the published result.
  var matched = 0
  /// Cases that were refused as the publisher demands.
  var refused = 0
  /// Cases that were refused because we do not support their parameters: a key or nonce of another
  /// size.
  var notOffered = 0

  var description: String { "matched \(matched), refused \(refused), not offered \(notOffered)" }
}
