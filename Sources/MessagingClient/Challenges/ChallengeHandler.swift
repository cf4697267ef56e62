public import VaultCrypto

/// Answers challenges of a server.
///
/// A connection asks ``canHandle(_:)`` for each challenge of a 401, from the strongest scheme to the weakest, and then
/// ``handle(_:)`` for the first one that is true. A handler never holds the connection that asks it. It can serve many
/// connections, also at the same time.
public protocol ChallengeHandler: Sendable {
  /// Whether the handler has an answer to a challenge of this scheme at this location; it must be fast.
  func canHandle(_ request: ChallengeRequest) -> Bool

  /// Answers a challenge; it can take as long as a prompt to the user takes.
  ///
  /// - Returns: the answer; nil ends the authentication, and the connection fails.
  /// - Throws: any error; the connection fails with it.
  func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse?
}

/// A challenge, and where it comes from.
public struct ChallengeRequest: Sendable {
  /// The location that was asked for; after a redirect, its target.
  public let location: Location

  /// The challenge.
  public let challenge: Challenge

  /// How many answers the server has refused since this connection last opened or closed.
  public let refusalCount: Int

  /// Makes a request.
  public init(location: Location, challenge: Challenge, refusalCount: Int = 0) {
    self.location = location
    self.challenge = challenge
    self.refusalCount = refusalCount
  }
}

/// The answer to a challenge.
public struct ChallengeResponse: ~Copyable, Sendable {
  /// The value of the field `Authorization`: scheme and credentials, in visible ASCII characters and spaces.
  public let authorization: SecretBytes

  /// The handler of the server's next challenge on this connection, if it can handle it; nil lets the connection's own
  /// handler decide again.
  public let nextHandler: (any ChallengeHandler)?

  /// Makes an answer.
  ///
  /// - Parameters:
  ///   - authorization: the whole value, such as `Basic dTpw`.
  ///   - nextHandler: the handler of the next round of a scheme with several rounds.
  public init(authorization: consuming SecretBytes, nextHandler: (any ChallengeHandler)? = nil) {
    self.authorization = authorization
    self.nextHandler = nextHandler
  }
}

/// What answers the challenges of a client's connections.
public struct ClientChallenges: Sendable {
  /// Asked for each challenge.
  public var handler: any ChallengeHandler
  /// The limits, which last over reconnections.
  ///
  /// Clients of one application can share them.
  public var `guard`: ChallengeGuard

  /// Makes the challenges of a client.
  public init(_ handler: any ChallengeHandler, guard: ChallengeGuard = ChallengeGuard()) {
    self.handler = handler
    self.guard = `guard`
  }
}
