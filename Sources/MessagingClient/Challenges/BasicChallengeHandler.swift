internal import VaultCrypto

/// Answers `Basic` (RFC 7617), and Kaazing's `Application Basic` if it was told so, with a user and a password.
///
/// The login handler of the challenge's realm gives the credentials, otherwise the general one. Without either, the
/// handler does not answer. The answer names the scheme that the server asked with, and is always in UTF-8.
public struct BasicChallengeHandler: ChallengeHandler {
  /// The most bytes of a user and a password together.
  public static let maximumByteCount = 8192

  private let schemes: Set<Challenge.Scheme>
  private let loginHandler: (any LoginHandler)?
  /// By the bytes of the realm: Swift compares strings by canonical equivalence.
  private var realmLoginHandlers: [[UInt8]: any LoginHandler] = [:]

  /// Makes a handler.
  ///
  /// - Parameters:
  ///   - loginHandler: gives the credentials of realms that have no login handler of their own; nil answers only those.
  ///   - answersApplicationBasic: whether the handler also answers `Application Basic`; false by default.
  ///   - answersBasic: whether the handler answers `Basic`; true by default.
  public init(
    _ loginHandler: (any LoginHandler)?, answersApplicationBasic: Bool = false,
    answersBasic: Bool = true
  ) {
    self.loginHandler = loginHandler
    schemes = Set(
      (answersBasic ? [.basic] : []) + (answersApplicationBasic ? [.applicationBasic] : []))
  }

  /// Sets the login handler of a realm, or removes it.
  ///
  /// - Parameters:
  ///   - loginHandler: nil removes the handler of the realm, whose challenges then go to the general one.
  ///   - realm: compared byte by byte, so case counts.
  public mutating func setLoginHandler(_ loginHandler: (any LoginHandler)?, forRealm realm: String)
  {
    realmLoginHandlers[Array(realm.utf8)] = loginHandler
  }

  /// Whether the scheme is one of the handler's, and there is a login handler for the realm.
  public func canHandle(_ request: ChallengeRequest) -> Bool {
    schemes.contains(request.challenge.scheme) && handler(for: request.challenge) != nil
  }

  /// Asks the login handler and returns `Basic` or `Application Basic` with its credentials; nil if it returns nil.
  ///
  /// - Throws: ``AuthenticationError`` with the code `invalidCredentials` for a user with a colon, a control character,
  ///   what is not UTF-8, or more than ``maximumByteCount`` bytes.
  public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
    guard canHandle(request), let handler = handler(for: request.challenge),
      let credentials = await handler.credentials(for: LoginRequest(request))
    else { return nil }
    return ChallengeResponse(
      authorization: try AuthorizationValue.basic(
        request.challenge.scheme, user: credentials.user, password: credentials.password))
  }

  private func handler(for challenge: Challenge) -> (any LoginHandler)? {
    challenge.realm.flatMap { realmLoginHandlers[Array($0.utf8)] } ?? loginHandler
  }
}
