public import VaultCrypto

/// Answers Kaazing's `Application Token` with a token, such as one of DataVault's message server.
public struct TokenChallengeHandler: ChallengeHandler {
  /// The longest token in bytes.
  public static let maximumByteCount = 22_000

  private let token: @Sendable (LoginRequest) async throws -> SecretBytes?

  /// Makes a handler.
  ///
  /// - Parameter token: returns the token for a realm of an origin, as text; nil ends the authentication. The closure
  ///   must not hold the connection strongly.
  public init(_ token: @escaping @Sendable (LoginRequest) async throws -> SecretBytes?) {
    self.token = token
  }

  /// Whether the scheme is `Application Token`.
  public func canHandle(_ request: ChallengeRequest) -> Bool {
    request.challenge.scheme == .applicationToken
  }

  /// Asks for the token and returns `Application Token` with it; nil if there is none.
  ///
  /// - Throws: ``AuthenticationError`` with the code `invalidCredentials` for a token that is empty, longer than
  ///   ``maximumByteCount``, or has other characters than letters, digits, `-._~+/` and `=` at its end; the error of
  ///   the closure.
  public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
    guard canHandle(request), let token = try await token(LoginRequest(request)) else { return nil }
    return ChallengeResponse(
      authorization: try AuthorizationValue.token(request.challenge.scheme, token))
  }
}
