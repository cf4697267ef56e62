/// The error of an authentication that gives no answer to a challenge.
///
/// It contains no credentials. Of the server's text it contains only the names of schemes, escaped.
public struct AuthenticationError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    /// The 401 has no challenge, or none that is well formed.
    public static let malformedChallenge = Code(description: "malformedChallenge")
    /// No handler answers any of the challenges.
    public static let noHandler = Code(description: "noHandler")
    /// A handler returned nil, or the connection ended while a handler worked.
    public static let cancelled = Code(description: "cancelled")
    /// The server has refused these credentials before, so that they are not sent again.
    public static let refused = Code(description: "refused")
    /// The server has refused so many answers that none is sent for some time.
    public static let tooManyAttempts = Code(description: "tooManyAttempts")
    /// Credentials are not sent over plain HTTP.
    public static let notProtected = Code(description: "notProtected")
    /// The challenge comes from another origin than the connection's.
    public static let foreignOrigin = Code(description: "foreignOrigin")
    /// A user, a password or a token cannot be sent: it breaks a rule of its scheme.
    public static let invalidCredentials = Code(description: "invalidCredentials")
    /// The server has accepted an answer to `Negotiate`, but has not proved its identity; see
    /// ``AuthenticationError/underlying``.
    public static let serverNotAuthenticated = Code(description: "serverNotAuthenticated")
    /// A handler threw an error, which is ``AuthenticationError/underlying``.
    public static let handlerFailed = Code(description: "handlerFailed")
    /// OpenSSL failed.
    public static let libraryFailure = Code(description: "libraryFailure")
  }

  /// The kind of failure.
  public let code: Code

  /// The description of what went wrong and where, in lower case.
  public let message: String

  /// The next step; nil if there is none.
  public let hint: String?

  /// The time after which the next answer can be sent, for `tooManyAttempts`.
  public let retryAfter: Duration?

  /// The error that caused this one, such as that of a handler; the description does not contain it.
  public let underlying: (any Error)?

  private init(
    _ code: Code, _ message: String, hint: String? = nil, retryAfter: Duration? = nil,
    underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.retryAfter = retryAfter
    self.underlying = underlying
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension AuthenticationError {
  static func malformedChallenge(_ fault: String?, at origin: Origin) -> AuthenticationError {
    AuthenticationError(
      .malformedChallenge,
      "the 401 of \(origin) has no usable challenge: \(fault ?? "it has no WWW-Authenticate field")"
    )
  }

  static func noHandler(_ challenges: [Challenge], at location: Location) -> AuthenticationError {
    let schemes = challenges.map { EscapedText("\($0.scheme)").text }.joined(separator: ", ")
    return AuthenticationError(
      .noHandler, "no handler answers the challenges of \(location): \(schemes)",
      hint: "register a challenge handler for one of the schemes at this location")
  }

  static func cancelled(at origin: Origin) -> AuthenticationError {
    AuthenticationError(.cancelled, "the authentication at \(origin) was cancelled")
  }

  static func refused(at origin: Origin) -> AuthenticationError {
    AuthenticationError(
      .refused, "\(origin) has refused these credentials before",
      hint: "use other credentials, or call ChallengeGuard.reset() if the server has changed")
  }

  static func tooManyAttempts(at origin: Origin, retryAfter: Duration) -> AuthenticationError {
    AuthenticationError(
      .tooManyAttempts, "too many answers to \(origin) were refused",
      hint: "correct the credentials, then wait or call ChallengeGuard.reset()",
      retryAfter: retryAfter)
  }

  static func notProtected(_ origin: Origin) -> AuthenticationError {
    AuthenticationError(
      .notProtected,
      "credentials are not sent to \(origin), because others on the way can read them",
      hint: "connect by https or wss")
  }

  static func foreignOrigin(_ origin: Origin, of configured: Origin) -> AuthenticationError {
    AuthenticationError(
      .foreignOrigin,
      "the challenge comes from \(origin), and the connection is one to \(configured)",
      hint: "if both are yours, call ChallengeGuard.allow(_:forConnectionsTo:)")
  }

  static func invalidCredentials(_ rule: String) -> AuthenticationError {
    AuthenticationError(.invalidCredentials, rule)
  }

  static func handlerFailed(_ error: any Error, at origin: Origin) -> AuthenticationError {
    AuthenticationError(
      .handlerFailed, "the challenge handler for \(origin) failed",
      hint: "see the underlying error",
      underlying: error)
  }

  static func serverNotAuthenticated(_ error: any Error, at origin: Origin) -> AuthenticationError {
    AuthenticationError(
      .serverNotAuthenticated, "\(origin) has not proved its identity",
      hint: "see the underlying error",
      underlying: error)
  }

  static func library(_ error: any Error) -> AuthenticationError {
    AuthenticationError(.libraryFailure, "the credentials cannot be compared", underlying: error)
  }
}
