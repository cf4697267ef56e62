internal import VaultCrypto

/// The login and the passcode of a client's connections.
struct STOMPCredentials: Sendable {
  private static let maximumRefusalCount = 3
  /// The most refused logins that are remembered.
  private static let maximumKeptCount = 64

  private let source: STOMPLogin.Source?
  private let origin: Origin
  private let sendsUnprotected: Bool
  /// What the handler gave, until the server refuses it.
  private var given: Login?
  private var refusalCount = 0
  /// What the server has refused, and is not sent again.
  private var refusedLogins: [Login] = []
  private var isRefused = false

  private struct Login: Sendable {
    let login: SharedSecret
    let passcode: SharedSecret

    func isEqual(_ other: Login) -> Bool {
      let isSame = [(login, other.login), (passcode, other.passcode)].map { a, b in
        a.withSecret { a in b.withSecret { b in SecretBytes.isEqual(a, b) } }
      }
      return !isSame.contains(false)
    }
  }

  init(_ configuration: STOMPConfiguration, _ origin: Origin) {
    source = configuration.login?.source
    sendsUnprotected = configuration.sendsPasscodeUnprotected
    self.origin = origin
  }

  /// The headers of CONNECT that say who connects.
  ///
  /// - Throws: `unauthenticated` if the handler has none, the server has refused them before, or the connection is not
  ///   protected.
  mutating func headers()
    async throws(MessagingClientError) -> [(name: String, value: SecretText)]
  {
    if source != nil, isRefused { throw Self.refused(.tooManyAttempts, at: origin) }
    switch source {
    case nil: return []
    case .fixed(let login, nil): return [("login", SecretText(login))]
    case .fixed(let login, let passcode?):
      try checkProtection()
      return [("login", SecretText(login)), ("passcode", SecretText(passcode))]
    case .handler(let handler):
      try checkProtection()
      if given == nil {
        let request = LoginRequest(origin: origin, rawRealm: nil, refusalCount: refusalCount)
        guard let credentials = await handler.credentials(for: request) else {
          throw MessagingClientError(.cancelled(at: origin))
        }
        let login = Login(
          login: SharedSecret(copying: credentials.user),
          passcode: SharedSecret(copying: credentials.password))
        guard !refusedLogins.contains(where: login.isEqual) else {
          throw Self.refused(.refused, at: origin)
        }
        given = login
      }
      guard let given else { return [] }
      return [("login", SecretText(given.login)), ("passcode", SecretText(given.passcode))]
    }
  }

  private static func refused(
    _ code: AuthenticationError.Code, at origin: Origin
  ) -> MessagingClientError {
    MessagingClientError(
      .unauthenticated, "\(origin.host) has refused the login before, and it is not sent again",
      hint: "make a client with another login", authentication: code)
  }

  private func checkProtection() throws(MessagingClientError) {
    guard origin.isProtected || origin.isLoopback || sendsUnprotected else {
      throw MessagingClientError(
        .unauthenticated,
        "the passcode is not sent to \(origin.host), because others on the way can read it",
        hint: "connect by stomps or https, or set sendsPasscodeUnprotected",
        authentication: .notProtected)
    }
  }

  /// Notes that the server has accepted them.
  mutating func accepted() { refusalCount = 0 }

  /// Notes that the server has refused them; false if there will be no others.
  mutating func refused() -> Bool {
    guard case .handler = source else {
      isRefused = true
      return false
    }
    if let given { refusedLogins = refusedLogins.suffix(Self.maximumKeptCount - 1) + [given] }
    given = nil
    refusalCount += 1
    isRefused = refusalCount >= Self.maximumRefusalCount
    return !isRefused
  }
}
