import MessagingClient

/// Fields of challenges, locations and their patterns, as a client reads them from a hostile server.
///
/// The first byte of the input selects one of these.
final class ChallengeFixture {
  private let origin: Origin

  init() {
    do {
      origin = try Origin("https://example.com")
    } catch {
      preconditionFailure("the fixture cannot be made: \(error)")
    }
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let parts = input.dropFirst().split(separator: 0, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    switch mode & 3 {
    case 0, 1: read(parts)
    case 2: parts.forEach(locate)
    default: match(parts)
    }
  }

  /// Challenges are within their bounds, and those of a field do not depend on other fields.
  private func read(_ fields: [String]) {
    let list = ChallengeList(fields)
    require(list.challenges.count <= ChallengeList.maximumChallengeCount, "too many challenges")
    let single = fields.flatMap { ChallengeList([$0]).challenges }
    if single.count <= ChallengeList.maximumChallengeCount,
      fields.reduce(0, { $0 + $1.utf8.count }) <= ChallengeList.maximumByteCount
    {
      require(single == list.challenges, "a challenge depends on another field")
    }
    for challenge in list.challenges {
      let names = challenge.parameters.map(\.name)
      require(Set(names).count == names.count, "a parameter occurs twice")
      require(
        names.count <= ChallengeList.maximumParameterCount
          && challenge.extraWords.count <= ChallengeList.maximumParameterCount,
        "too many parameters")
      require(challenge.token68 == nil || names.isEmpty, "data and parameters")
      show(challenge.realm)
      guard challenge.extraWords.isEmpty else { continue }
      let again = ChallengeList([Self.text(challenge)]).challenges
      require(again == [challenge], "\(challenge) is \(again) when it is written again")
    }
  }

  /// A challenge as RFC 9110 writes it.
  private static func text(_ challenge: Challenge) -> String {
    let parameters = challenge.parameters.map { parameter in
      let value = parameter.value.unicodeScalars.map { scalar in
        scalar == "\"" || scalar == "\\" ? "\\\(scalar)" : "\(scalar)"
      }
      return "\(parameter.name)=\"\(value.joined())\""
    }
    return "\(challenge.scheme) " + (challenge.token68 ?? parameters.joined(separator: ", "))
  }

  /// What people see is one bounded line behind the origin.
  private func show(_ realm: String?) {
    let text = LoginRequest(origin: origin, rawRealm: realm).description
    require(text.hasPrefix("\(origin)"), "the origin is not first")
    require(text.unicodeScalars.count <= 1100, "a realm without end")
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
        require(false, "a realm shows U+\(String(scalar.value, radix: 16))")
      default: break
      }
    }
  }

  /// A location is the same when its description is read, and its description matches it.
  private func locate(_ text: String) {
    guard let location = try? Location(text) else { return }
    let description = location.description
    guard let again = try? Location(description) else {
      return require(false, "\(description) is no location")
    }
    require(
      again.origin == location.origin && again.path == location.path && again.user == location.user,
      "\(text) is \(description)")
    require(
      description.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a location shows other characters")
    guard !description.contains("*"), let pattern = try? LocationPattern(description) else {
      return
    }
    require(pattern.matches(again), "\(description) does not match itself")
  }

  /// A pattern without a wildcard matches one origin's port and one path; a dispatcher agrees.
  private func match(_ parts: [String]) {
    guard parts.count == 2, let pattern = try? LocationPattern(parts[0]),
      let location = try? Location(parts[1])
    else { return }
    let isMatch = pattern.matches(location)
    let dispatcher = DispatchChallengeHandler()
    dispatcher.register(TokenChallengeHandler { _ in nil }, at: pattern)
    guard let challenge = ChallengeList(["Application Token"]).challenges.first else {
      return require(false, "a challenge is none")
    }
    let request = ChallengeRequest(location: location, challenge: challenge)
    require(dispatcher.canHandle(request) == isMatch, "a dispatcher chooses another pattern")
    guard isMatch, !parts[0].contains("*") else { return }
    let segments = { (path: Substring) in path.split(separator: "/").count }
    let path = pattern.description.drop { $0 != "/" }
    require(segments(path) == segments(location.path[...]), "a pattern matches another path")
    require(
      pattern.description.contains(":\(location.origin.port)"), "a pattern matches another port")
  }
}
