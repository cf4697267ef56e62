/// Where a connection goes: an origin, a path, and a user if the URL has one.
///
/// It is what a challenge handler sees of a connection's URL, and what a ``LocationPattern`` matches. A query and a
/// fragment are left out. A password of the URL is kept for matching, in memory that is wiped, and never shown.
///
/// Hostile texts are refused: characters outside RFC 3986, control characters also where they are percent-encoded,
/// empty and dot segments inside the path, numbers that only a resolver takes for an address, and zones of IPv6.
public struct Location: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The longest text in bytes.
  public static let maximumByteCount = 4096

  /// The origin, with its host in lower case.
  public let origin: Origin

  /// The user of the URL without percent encoding; nil if the URL has none.
  public let user: String?

  /// The path as it was written, without the query: `/` if the URL has none.
  public let path: String

  /// Whether the URL has a password that is not empty.
  public var hasPassword: Bool { tokens.userInfo.count > 1 }

  let tokens: LocationTokens
  private let writtenUser: String?

  /// Reads a URL.
  ///
  /// - Parameters:
  ///   - text: a URL of the schemes `http`, `https`, `ws` and `wss`, in any case.
  ///   - defaultScheme: the scheme of a text without one, such as `example.com/path`. By default such a text is
  ///     refused.
  /// - Throws: ``LocationError``.
  public init(_ text: String, defaultScheme: Origin.Scheme? = nil) throws(LocationError) {
    let parts = try LocationParts(text, defaultScheme: defaultScheme)
    guard let scheme = parts.scheme else { throw .unknownScheme }
    origin = try Origin(scheme, host: parts.host, port: parts.portNumber)
    writtenUser = try parts.credentials.map { String($0.user) }
    if let (user, _) = try parts.credentials {
      guard let text = String(validating: try LocationParts.decode(user), as: UTF8.self) else {
        throw .malformed("the user is not UTF-8")
      }
      self.user = text
    } else {
      user = nil
    }
    path = parts.path.isEmpty ? "/" : String(parts.path)
    // A pattern compares the host as it was written.
    let isAddress = parts.host.hasPrefix("[")
    let labels = isAddress ? [origin.host[...]] : parts.host.split(separator: ".").reversed()
    tokens = LocationTokens(
      host: labels.map { .text(Array($0.utf8)) }, port: LocationTokens.port(origin.port),
      userInfo: try LocationTokens.userInfo(parts, isPattern: false),
      path: try LocationTokens.path(parts, isPattern: false))
  }

  /// The URL without its password, its query and the port that the scheme implies.
  public var description: String {
    let user = writtenUser.map { "\($0)@" } ?? ""
    let scheme = "\(origin.scheme.rawValue)://"
    return scheme + user + "\(origin)".dropFirst(scheme.count) + path
  }

  /// The location as its description alone.
  public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
