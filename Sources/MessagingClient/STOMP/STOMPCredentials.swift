internal import VaultCrypto

/// The login and the passcode of a client's connections.
struct STOMPCredentials: Sendable {
  private static let maximumRefusalCount = 3

  private let source: STOMPLogin.Source?
  private let origin: Origin
  private let sendsUnprotected: Bool
  /// What the handler gave, until the server refuses it.
  private var given: (login: SharedSecret, passcode: SharedSecret)?
  private var refusalCount = 0

  init(_ configuration: STOMPConfiguration, _ origin: Origin) {
    source = configuration.login?.source
    sendsUnprotected = configuration.sendsPasscodeUnprotected
    self.origin = origin
  }

  /// The headers of CONNECT that say who connects.
  ///
  /// - Throws: `unauthenticated` if the handler has none, or the connection is not protected.
  mutating func headers()
    async throws(MessagingClientError) -> [(name: String, value: SecretText)]
  {
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
        given = (
          SharedSecret(copying: credentials.user), SharedSecret(copying: credentials.password)
        )
      }
      guard let given else { return [] }
      return [("login", SecretText(given.login)), ("passcode", SecretText(given.passcode))]
    }
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
    guard case .handler = source else { return false }
    given = nil
    refusalCount += 1
    return refusalCount < Self.maximumRefusalCount
  }
}
