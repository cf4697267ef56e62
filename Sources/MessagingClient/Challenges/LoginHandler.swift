public import VaultCrypto

/// Gives a user and a password for a realm, for example by asking the user.
public protocol LoginHandler: Sendable {
  /// Returns the credentials for a realm of an origin; nil if there are none, or the user has cancelled.
  ///
  /// Nil ends the authentication, and the connection fails. After a refusal the handler is asked again, and it must
  /// return other credentials or nil: the same ones are not sent twice.
  func credentials(for request: LoginRequest) async -> LoginCredentials?
}

/// For what a user and a password, or a token, are asked.
public struct LoginRequest: Sendable, CustomStringConvertible {
  /// The origin to which they will be sent.
  public let origin: Origin

  /// The realm for people: the first 100 characters of what the server sent, in one line.
  ///
  /// Control characters, line breaks, and characters that are invisible or change the direction of text are escaped as
  /// `\u{...}`. It is empty if the server sent no realm. The server chooses it, so show the origin first, as
  /// ``description`` does.
  public let realm: String

  /// The realm as the server sent it; nil if it sent none.
  ///
  /// Compare it, but do not show it.
  public let rawRealm: String?

  /// How many answers the server has refused since the connection last opened or closed: 0 for the first attempt.
  public let refusalCount: Int

  /// Makes a request.
  public init(origin: Origin, rawRealm: String?, refusalCount: Int = 0) {
    self.origin = origin
    self.rawRealm = rawRealm
    realm = EscapedText(rawRealm ?? "").text
    self.refusalCount = refusalCount
  }

  init(_ request: ChallengeRequest) {
    self.init(
      origin: request.location.origin, rawRealm: request.challenge.realm,
      refusalCount: request.refusalCount)
  }

  /// The origin, and then the realm in quotation marks, in one line.
  public var description: String { rawRealm == nil ? "\(origin)" : "\(origin) \"\(realm)\"" }
}

/// A user and a password, in memory that is wiped.
public struct LoginCredentials: ~Copyable, Sendable {
  /// The name of the user in UTF-8.
  public let user: SecretBytes

  /// The password in UTF-8.
  public let password: SecretBytes

  /// Makes credentials; the handler checks them when it answers.
  public init(user: consuming SecretBytes, password: consuming SecretBytes) {
    self.user = user
    self.password = password
  }
}

/// A login handler that is a closure.
public struct ClosureLoginHandler: LoginHandler {
  private let body: @Sendable (LoginRequest) async -> LoginCredentials?

  /// Makes a handler; the closure must not hold the connection strongly.
  public init(_ body: @escaping @Sendable (LoginRequest) async -> LoginCredentials?) {
    self.body = body
  }

  /// Calls the closure.
  public func credentials(for request: LoginRequest) async -> LoginCredentials? {
    await body(request)
  }
}
