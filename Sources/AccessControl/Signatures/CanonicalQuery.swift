/// The query of a signed request in the form that its signature covers.
///
/// Every parameter but `signature`, sorted by name, with each value decoded and encoded again. Some
/// SDKs sign some values in another form, so a query has several candidates.
struct CanonicalQuery {
  /// More parameters are not verified, so that a forged request costs little.
  static let maximumParameterCount = 256

  /// The most candidates that are tried for one request.
  static let maximumCandidateCount = 32

  private struct Member {
    let name: ArraySlice<UInt8>
    /// The forms of the value, the usual one first.
    let forms: [[UInt8]]
  }

  private let members: [Member]

  /// Sorts the parameters; nil if there are too many.
  init?(_ request: RawRequest) {
    guard request.parameters.count <= Self.maximumParameterCount else { return nil }
    let encodedTwice = Self.namesEncodedTwice(on: request.path)
    members = request.parameters.filter { !$0.isNamed("signature") }
      .sorted { $0.name.lexicographicallyPrecedes($1.name) }
      .map { Member(name: $0.name, forms: Self.forms($0, encodedTwice: encodedTwice)) }
  }

  /// How many candidates there are.
  var candidateCount: Int {
    var count = 1
    for member in members {
      count *= member.forms.count
      if count >= Self.maximumCandidateCount { return Self.maximumCandidateCount }
    }
    return count
  }

  /// A candidate; number 0 has the usual form of every value.
  func candidate(_ number: Int) -> [UInt8] {
    var rest = number
    var text: [UInt8] = []
    for (index, member) in members.enumerated() {
      if index > 0 { text.append(UInt8(ascii: "&")) }
      text += member.name
      text.append(UInt8(ascii: "="))
      text += member.forms[rest % member.forms.count]
      rest /= member.forms.count
    }
    return text
  }

  private static func forms(
    _ parameter: RawRequest.Parameter, encodedTwice: Set<String>
  ) -> [[UInt8]] {
    let name = String(decoding: parameter.name, as: UTF8.self)
    let usual = PercentEncoding.encode(PercentEncoding.decode(parameter.value))
    var forms = [usual]
    // Python encodes some values before it signs them, and Go those of the caller's own parameters.
    if encodedTwice.contains(name) || !knownNames.contains(name) {
      forms.append(PercentEncoding.encode(parameter.value))
    }
    // Ruby signs these as it has written them.
    if ["t", "state", "filter-expr"].contains(name) { forms.append(Array(parameter.value)) }
    var different: [[UInt8]] = []
    for form in forms where !different.contains(form) { different.append(form) }
    return different
  }

  private static func namesEncodedTwice(on path: ArraySlice<UInt8>) -> Set<String> {
    if path.starts(with: "/v2/subscribe/".utf8) {
      return ["filter-expr", "channel-group", "state"]
    }
    if path.starts(with: "/v2/presence/".utf8) { return ["channel-group", "state"] }
    if path.starts(with: "/v2/auth/audit/".utf8) { return ["channel", "channel-group", "auth"] }
    return []
  }

  /// The parameters that the SDKs themselves send.
  private static let knownNames: Set<String> = [
    "add", "auth", "category", "channel", "channel-group", "channelsTimetoken",
    "count", "custom_message_type", "d", "disable-uuids", "disable_uuids", "ee", "end",
    "filter-expr", "g", "heartbeat", "include_custom_message_type", "include_message_type",
    "include_meta", "include_token", "include_uuid", "instanceid", "j", "limit", "m", "max", "meta",
    "norep", "offset", "ortt", "pnsdk", "ptto", "r", "remove", "requestid", "reverse", "seqn",
    "start", "state", "store", "string_message_token", "t", "target-uuid", "timestamp",
    "timetoken", "tr", "tt", "ttl", "u", "uuid", "w",
  ]
}
