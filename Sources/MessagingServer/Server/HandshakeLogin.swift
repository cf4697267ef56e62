internal import AccessControl
internal import ApplicationStore
internal import NIOCore
internal import NIOHTTP1

/// Why the credentials of a request are not taken.
struct LoginRefusal: Error, Sendable {
  let status: Int
  let message: String
  var challenges: [Challenge] = []
  /// Seconds after which the client can try again; nil where that does not help.
  var retryAfter: Int?

  static let unprotected = LoginRefusal(
    status: 403, message: "credentials are taken over TLS only")

  /// What a wrong token for an application without users gets.
  static func wrongToken(for realm: String, isProtected: Bool) -> LoginRefusal {
    isProtected ? wrong([Challenge(.applicationToken, realm: realm)]) : unprotected
  }

  fileprivate static func wrong(_ challenges: [Challenge]) -> LoginRefusal {
    LoginRefusal(status: 401, message: "the credentials are wrong", challenges: challenges)
  }

  /// `{"error":"..."}`, as Pusher's clients show it.
  var response: HTTPResponse {
    var response = HTTPResponse.pusher(status, message)
    response.challenges = challenges
    response.retryAfter = retryAfter
    return response
  }
}

extension OpenHome {
  /// Whom the credentials of a request name, for what lasts longer than the request.
  ///
  /// - Throws: ``LoginRefusal``, also for a token that has ended or was revoked.
  func principal(
    _ authorization: Authorization, of request: HTTPRequest, to application: DirectoryEntry
  ) async throws(LoginRefusal) -> Principal {
    let result = await login(
      authorization, to: application, from: request.source, isProtected: request.isProtected)
    let challenges = challenges(ofCredentialsFor: application)
    switch result {
    case .principal(let principal):
      // The request names no user, so the token does.
      let named =
        if case .token(let token, _) = principal {
          Principal.token(token, userID: token.contents.authorizedUserID)
        } else {
          principal
        }
      guard directory.refusal(of: named, in: application.id, at: now()) == nil else {
        throw LoginRefusal(
          status: 401, message: "the credentials have ended", challenges: challenges)
      }
      return named
    case .wrong: throw .wrong(challenges)
    case .unprotected: throw .unprotected
    case .wait(let seconds):
      throw LoginRefusal(
        status: 429, message: "too many attempts to log in", retryAfter: seconds)
    case .busy: throw LoginRefusal(status: 503, message: "try again later", retryAfter: 1)
    }
  }
}

/// What the fields `Authorization` of a WebSocket handshake say.
enum HandshakeLogin: Sendable {
  /// Nothing that counts for the application.
  case anonymous
  case principal(Principal)
  /// The vault was locked, so that no one could be found out: the session is refused, not anonymous.
  case sealed
}

extension HomeGate {
  /// How often a handshake that waits looks for an unlock.
  private static let lookTime = Duration.milliseconds(500)

  /// Finds out who asks for a WebSocket, and then calls `open`, or refuses the handshake by HTTP.
  ///
  /// Without the field it calls `open` immediately.
  ///
  /// - Parameters:
  ///   - sealedTime: how long a handshake waits for an unlock.
  ///   - find: the application; nil if there is none, about which the session tells its client.
  func logIn(
    _ exchange: HTTPExchange, sealedTime: Duration = .zero,
    to find: @escaping @Sendable (OpenHome) -> DirectoryEntry?,
    open: @escaping @Sendable (HandshakeLogin) -> Void
  ) {
    let request = exchange.request
    guard request.authorization != nil else { return open(.anonymous) }
    guard let home else {
      guard sealedTime > .zero else { return open(.sealed) }
      exchange.eventLoop.scheduleTask(in: TimeAmount(Self.lookTime)) { [self] in
        logIn(exchange, sealedTime: sealedTime - Self.lookTime, to: find, open: open)
      }
      return
    }
    guard let application = find(home),
      let authorization = home.authorization(of: request, to: application)
    else { return open(.anonymous) }
    guard !request.canBeFromOtherPage else {
      let refusal = LoginRefusal(
        status: 403, message: "a web page of another server cannot log in by Basic")
      return exchange.answer(refusal.response)
    }
    Task {
      do throws(LoginRefusal) {
        open(
          .principal(try await home.principal(authorization, of: request, to: application)))
      } catch {
        exchange.answer(error.response)
      }
    }
  }
}

extension HTTPRequest {
  /// Whether a browser can have added a password that it keeps to the handshake of another server's page.
  ///
  /// Browsers do so for `Basic` alone, and no page can read or set the field.
  fileprivate var canBeFromOtherPage: Bool {
    headers.first(name: "authorization")?.prefix(5).lowercased() == "basic" && isFromOtherOrigin()
  }
}
