/// A challenge of a server: how it wants a client to authenticate (RFC 9110, 11.3).
///
/// A ``ChallengeList`` reads challenges from the `WWW-Authenticate` fields of a 401.
public struct Challenge: Sendable, Hashable {
  /// An authentication scheme; case does not count in its comparison.
  public struct Scheme: Sendable, Hashable, CustomStringConvertible {
    /// The name: that of RFC 7617, RFC 4559 or Kaazing for a scheme that this library knows, otherwise as it was sent.
    public let description: String
    private let key: String

    /// Makes a scheme from its name.
    public init(_ name: String) {
      let key = HostName.lowercased(name)
      description = Self.known.first { $0.key == key }?.name ?? name
      self.key = key
    }

    private static let known = [
      "Basic", "Negotiate", "Application Basic", "Application Negotiate", "Application Token",
    ].map { (name: $0, key: HostName.lowercased($0)) }

    /// User and password (RFC 7617).
    public static let basic = Scheme("Basic")
    /// GSSAPI and SPNEGO (RFC 4559).
    public static let negotiate = Scheme("Negotiate")
    /// User and password, for applications instead of browsers.
    public static let applicationBasic = Scheme("Application Basic")
    /// GSSAPI and SPNEGO, for applications instead of browsers.
    public static let applicationNegotiate = Scheme("Application Negotiate")
    /// A token, for applications instead of browsers.
    public static let applicationToken = Scheme("Application Token")

    /// Whether two names are the same scheme.
    public static func == (a: Scheme, b: Scheme) -> Bool { a.key == b.key }

    /// Hashes the name without regard to case.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    /// The place among schemes of a 401: 0 for the strongest.
    ///
    /// Schemes that this library does not know have handlers of the application.
    var rank: Int {
      switch self {
      case .negotiate: 0
      case .applicationNegotiate: 1
      case .applicationToken: 2
      case .basic: 4
      case .applicationBasic: 5
      default: 3
      }
    }
  }

  /// A parameter of a challenge.
  public struct Parameter: Sendable, Hashable {
    /// The name in lower case.
    public let name: String
    /// The value without quotation marks and escapes.
    public let value: String
  }

  /// The scheme.
  public let scheme: Scheme

  /// The data in place of parameters, such as the token of `Negotiate`; nil if there is none.
  public internal(set) var token68: String?

  /// The parameters in their order; each name occurs once.
  public internal(set) var parameters: [Parameter] = []

  /// The words that Kaazing's gateway adds after the realm, separated by spaces, as they were sent.
  ///
  /// They are outside the grammar of RFC 9110, and nothing in this library uses them.
  public internal(set) var extraWords: [String] = []

  init(_ scheme: Scheme) { self.scheme = scheme }

  /// The value of a parameter, whose name is compared without regard to case; nil if there is none.
  public subscript(name: String) -> String? {
    let name = HostName.lowercased(name)
    return parameters.first { $0.name == name }?.value
  }

  /// The realm as the server sent it, without escapes; nil if there is none.
  ///
  /// A hostile server chooses it: show ``LoginRequest/realm`` instead.
  public var realm: String? { self["realm"] }
}
