/// Why an operation of a client failed.
///
/// It never has a credential, a key or a payload.
public struct MessagingClientError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A kind of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    /// An argument is not valid; nothing was sent.
    public static let invalidArgument = Code(description: "invalidArgument")
    /// No connection to the server was made; nothing was sent.
    public static let cannotConnect = Code(description: "cannotConnect")
    /// The server did not prove who it is; nothing was sent.
    public static let untrustedServer = Code(description: "untrustedServer")
    /// The connection was lost, or no answer came in time.
    ///
    /// The operation changes nothing, or it was repeated safely without an answer.
    public static let unavailable = Code(description: "unavailable")
    /// The request was sent, and no answer came: the server can have done it or not.
    public static let outcomeUnknown = Code(description: "outcomeUnknown")
    /// The server refuses the operation for what the client is or has.
    public static let forbidden = Code(description: "forbidden")
    /// No handler answers the server's challenge, or the answers were refused.
    public static let unauthenticated = Code(description: "unauthenticated")
    /// The server refuses the request as not valid.
    public static let refused = Code(description: "refused")
    /// The server is locked, or has too much to do: try again later.
    public static let busy = Code(description: "busy")
    /// The server's answer is not in the protocol, or larger than the client takes.
    public static let invalidAnswer = Code(description: "invalidAnswer")
    /// A redirect leads to another origin, or there are too many.
    public static let refusedRedirect = Code(description: "refusedRedirect")
    /// The application ended the operation, or closed the client.
    public static let cancelled = Code(description: "cancelled")
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, for people.
  public let message: String
  /// What to do next, for people; nil if there is nothing to say.
  public let hint: String?
  /// The status of the HTTP answer, if there was one.
  public let status: Int?
  /// Why a challenge was not answered, if that was the cause.
  public let authentication: AuthenticationError.Code?

  init(
    _ code: Code, _ message: String, hint: String? = nil, status: Int? = nil,
    authentication: AuthenticationError.Code? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.status = status
    self.authentication = authentication
  }

  init(_ error: AuthenticationError) {
    self.init(
      error.code == .libraryFailure ? .invalidArgument : .unauthenticated, error.message,
      hint: error.hint, status: 401, authentication: error.code)
  }

  /// The message, and the hint on a line of its own.
  public var description: String { hint.map { "\(message)\nhint: \($0)" } ?? message }
}
