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
