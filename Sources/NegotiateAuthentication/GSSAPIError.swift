internal import CGSSAPI
internal import MessagingClient

/// The error of a ``GSSAPIContext``.
///
/// It contains GSSAPI's words, escaped, because a KDC or a server can choose some of them. It contains no token.
public struct GSSAPIError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    /// A host or the name of a ticket cache breaks a rule.
    public static let invalidArgument = Code(description: "invalidArgument")
    /// The ticket cache is missing or has no ticket.
    public static let noCredentials = Code(description: "noCredentials")
    /// The tickets have expired.
    public static let credentialsExpired = Code(description: "credentialsExpired")
    /// The server's token is malformed, too long, or not meant for this authentication.
    public static let invalidServerToken = Code(description: "invalidServerToken")
    /// The server has sent no proof of its identity.
    public static let serverNotAuthenticated = Code(description: "serverNotAuthenticated")
    /// The context has ended, or was asked for two first tokens.
    public static let contextUsed = Code(description: "contextUsed")
    /// Another failure, such as an unknown realm, an unknown server, or a KDC that does not answer.
    public static let failed = Code(description: "failed")
  }

  /// The kind of failure.
  public let code: Code

  /// The description of what went wrong and where, in lower case.
  public let message: String

  /// The next step; nil if there is none.
  public let hint: String?

  private init(_ code: Code, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension GSSAPIError {
  /// The most characters of GSSAPI's words that are shown.
  static let maximumCharacterCount = 400

  init(_ status: Status, peer: String, credentialCache: String?) {
    let place = credentialCache.map { " in \(Self.escaped($0))" } ?? ""
    switch Int(cgssapi_routine_error(status.major)) {
    case cgssapi_no_credential:
      self.init(
        .noCredentials, "there is no ticket for \(peer)\(place): \(Self.escaped(status.text))",
        hint: "get one with kinit, and look at your tickets with klist")
    case cgssapi_credentials_expired:
      self = .credentialsExpired(peer)
    case cgssapi_defective_token, cgssapi_bad_signature:
      self.init(
        .invalidServerToken,
        "the token of \(peer) is not valid: \(Self.escaped(status.text))", hint: Self.otherServer)
    default: self = .failed(peer, status.text)
    }
  }

  static func credentialsExpired(_ peer: String) -> GSSAPIError {
    GSSAPIError(
      .credentialsExpired, "the tickets for \(peer) have expired", hint: "get new ones with kinit")
  }

  static func failed(_ peer: String, _ words: String) -> GSSAPIError {
    GSSAPIError(
      .failed, "the authentication at \(peer) failed: \(escaped(words))",
      hint: "compare the server's name, the realm and the KDC with krb5.conf, and the clocks")
  }

  static func invalidServerToken(_ peer: String) -> GSSAPIError {
    GSSAPIError(.invalidServerToken, "the token of \(peer) is not valid", hint: otherServer)
  }

  static func serverNotAuthenticated(_ peer: String) -> GSSAPIError {
    GSSAPIError(
      .serverNotAuthenticated, "\(peer) has not proved its identity", hint: otherServer)
  }

  static func contextUsed(_ peer: String) -> GSSAPIError {
    GSSAPIError(
      .contextUsed, "the context for \(peer) serves no further round",
      hint: "make a new context for each authentication")
  }

  static func invalidArgument(_ rule: String) -> GSSAPIError {
    GSSAPIError(.invalidArgument, rule)
  }

  private static let otherServer = "another server or a proxy can have answered in its place"

  static func escaped(_ words: String) -> String {
    EscapedText(words, maximumCount: maximumCharacterCount).text
  }
}
