/// A pattern of locations, such as `*.example.com:8000/private/*`.
///
/// A pattern has the form of a URL, and its scheme can be missing. The scheme decides only the port of a pattern
/// without one: 443 for `https` and `wss`, otherwise 80. It is not compared itself. A query, a fragment and slashes at
/// the end are ignored.
///
/// A pattern has four kinds of tokens, and each kind is compared with the same kind of the location:
///
/// - the labels of the host, from the last to the first; case counts, so write hosts in lower case,
/// - the port,
/// - the user and the password,
/// - the segments of the path, in which case counts and percent-encoded bytes are decoded.
///
/// `*` is a wildcard where it is a whole token. It takes one or more tokens, up to the end of their kind. What follows
/// it within that kind therefore matches nothing, so that `foo.*.com` and `/a/*/c` match no location. There is one
/// exception: wildcards at the end of a path also match no segment, if two or more tokens of the path match before
/// them.
///
/// A pattern never limits credentials to TLS or to an origin: ``ChallengeGuard`` does.
public struct LocationPattern: Sendable, Hashable, CustomStringConvertible {
  let tokens: LocationTokens

  /// The pattern without a scheme and a password.
  public let description: String

  /// Reads a pattern.
  ///
  /// - Throws: ``LocationError`` for an empty host, an empty segment inside the path, another scheme, or a scheme in
  ///   upper case.
  public init(_ text: String) throws(LocationError) {
    let parts = try LocationParts(text, defaultScheme: .http)
    guard let scheme = parts.scheme,
      parts.writtenScheme.map({ HostName.lowercased($0) == $0 }) ?? true
    else {
      throw .unknownScheme
    }
    let port =
      parts.port == "*"
      ? LocationTokens.Token.any : LocationTokens.port(try parts.portNumber ?? scheme.defaultPort)
    tokens = LocationTokens(
      host: try Self.host(parts.host), port: port,
      userInfo: try LocationTokens.userInfo(parts, isPattern: true),
      path: try LocationTokens.path(parts, isPattern: true))
    let user = try parts.credentials.map { "\($0.user)\($0.password == nil ? "" : ":...")@" } ?? ""
    let portText = parts.port ?? "\(scheme.defaultPort)"
    description = "\(user)\(parts.host):\(portText)\(parts.path)"
  }

  private static func host(_ host: String) throws(LocationError) -> [LocationTokens.Token] {
    if host.hasPrefix("[") { return [.text(Array(try HostName.canonical(host).utf8))] }
    var tokens: [LocationTokens.Token] = []
    for label in host.split(separator: ".", omittingEmptySubsequences: false).reversed() {
      if label == "*" {
        tokens.append(.any)
        continue
      }
      // A `*` that is not alone is no wildcard, and a host has none: the pattern matches nothing.
      let name = String(label.filter { $0 != "*" })
      _ = try HostName.canonical(name.isEmpty ? String(label) : "\(name).label")
      tokens.append(.text(Array(label.utf8)))
    }
    return tokens
  }

  /// Whether the pattern matches a location.
  public func matches(_ location: Location) -> Bool {
    let given = location.tokens
    return Self.matches(tokens.host, given.host) && Self.matches([tokens.port], [given.port])
      && Self.matches(tokens.userInfo, given.userInfo) && Self.matchesPath(tokens.path, given.path)
  }

  /// Compares the tokens of one kind.
  private static func matches(_ pattern: [LocationTokens.Token], _ given: [LocationTokens.Token])
    -> Bool
  {
    guard let wildcard = pattern.firstIndex(of: .any) else { return pattern == given }
    return wildcard == pattern.count - 1 && given.count > wildcard
      && given.starts(with: pattern[..<wildcard])
  }

  /// Compares paths, in which wildcards at the end can match no segment.
  private static func matchesPath(
    _ pattern: [LocationTokens.Token], _ given: [LocationTokens.Token]
  ) -> Bool {
    let exact = pattern.prefix { $0 != .any }
    let wildcards = pattern[exact.count...]
    guard wildcards.allSatisfy({ $0 == .any }), given.starts(with: exact) else { return false }
    if wildcards.isEmpty || given.count == exact.count {
      return given.count == exact.count && (wildcards.isEmpty || exact.count >= 2)
    }
    // The first wildcard takes what is left. The others take nothing, which needs two tokens before them.
    return wildcards.count == 1 || exact.count >= 1
  }

  /// Whether this pattern is more specific than another one that matches the same location.
  ///
  /// The kinds are compared in the order host, port, user and password, path. The first difference decides: more exact
  /// tokens, and then fewer wildcards.
  func isMoreSpecific(than other: LocationPattern) -> Bool {
    for (own, others) in zip(tokens.kinds, other.tokens.kinds) {
      let exact = (own.count { $0 != .any }, others.count { $0 != .any })
      if exact.0 != exact.1 { return exact.0 > exact.1 }
      if own.count != others.count { return own.count < others.count }
    }
    return false
  }
}

extension LocationTokens {
  /// The kinds in the order of their weight.
  fileprivate var kinds: [[Token]] { [host, [port], userInfo, path] }
}
