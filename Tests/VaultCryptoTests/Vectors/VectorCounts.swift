/// How many cases ended how: compared with the expected numbers, so that an empty run cannot pass.
struct VectorCounts: Equatable, CustomStringConvertible {
  /// Accepted with the published result.
  var matched = 0
  /// Refused, as the publisher demands.
  var refused = 0
  /// Refused because we do not offer the parameters: a key or a nonce of another size.
  var notOffered = 0

  var description: String { "matched \(matched), refused \(refused), not offered \(notOffered)" }
}
