public import Logging
public import VaultCrypto

/// The authentication of one connection: takes the challenges of a 401, and gives the value of `Authorization`.
///
/// It does no input or output. The connection calls ``answer(_:at:)`` for each 401, ``refused()`` for a 403 after an
/// answer, ``opened(_:)`` when it has opened, and ``closed()`` when it, or an attempt to open it, has ended. The
/// authenticator and its handlers never hold the connection.
public actor Authenticator {
  /// The most rounds of one authentication.
  public static let maximumRoundCount = 8

  /// The value of `Authorization`, and what the connection must know about it.
  public struct Answer: ~Copyable, Sendable {
    /// The value of the field, to be written late and wiped.
    public let authorization: SecretBytes
    /// The scheme.
    public let scheme: Challenge.Scheme
    /// Whether the next request must go over the same transport connection, as `Negotiate` demands.
    public let needsSameConnection: Bool
  }

  private let configured: Origin
  private let handler: any ChallengeHandler
  private let challengeGuard: ChallengeGuard
  private let log: ClientLog

  /// The answer whose result is not known.
  private var sent: SentAnswer?
  private var nextHandler: (any ChallengeHandler)?
  private var roundCount = 0
  private var refusalCount = 0
  /// Whether a handler has returned nil: no further challenge is answered.
  private var isStopped = false
  private var isWorking = false
  /// Changes when the connection opens or closes, so that an answer that comes too late is dropped.
  private var generation = 0

  /// Makes the authentication of a connection.
  ///
  /// - Parameters:
  ///   - configured: the origin of the connection's URL, as the application has given it.
  ///   - handler: answers the challenges, for example a ``DispatchChallengeHandler``.
  ///   - challengeGuard: the guard of the client, which all its connections share.
  ///   - logger: by default nothing is written.
  public init(
    connectionTo configured: Origin, handler: any ChallengeHandler, challengeGuard: ChallengeGuard,
    logger: Logger? = nil
  ) {
    self.init(
      connectionTo: configured, handler: handler, challengeGuard: challengeGuard,
      log: ClientLog(logger ?? .silent, client: "authenticator", server: "\(configured)"))
  }

  init(
    connectionTo configured: Origin, handler: any ChallengeHandler, challengeGuard: ChallengeGuard,
    log: ClientLog
  ) {
    self.configured = configured
    self.handler = handler
    self.challengeGuard = challengeGuard
    self.log = log
  }

  deinit {
    if let sent { challengeGuard.settle(sent, .unanswered) }
  }

  /// Answers a 401.
  ///
  /// Of several challenges it answers the strongest that a handler can answer: `Negotiate`, `Application Negotiate`,
  /// `Application Token`, schemes of the application's own handlers, `Basic`, `Application Basic`. It does not turn to
  /// a weaker one if that fails.
  ///
  /// A 401 that follows an answer is its refusal, unless it continues `Negotiate`.
  ///
  /// - Parameters:
  ///   - fields: the values of the `WWW-Authenticate` fields in their order.
  ///   - location: where the request went; after a redirect, its target.
  /// - Throws: ``AuthenticationError`` that says why there is no answer. The connection must then fail.
  public func answer(_ fields: [String], at location: Location) async throws(AuthenticationError)
    -> Answer
  {
    let origin = location.origin
    guard !isWorking else { throw .cancelled(at: origin) }
    let list = ChallengeList(fields)
    let continued = continuation(list, at: location)
    settle(at: origin, isContinuing: continued != nil)
    guard !isStopped else { throw .cancelled(at: origin) }
    guard !list.challenges.isEmpty else { throw .malformedChallenge(list.fault, at: origin) }
    try challengeGuard.permit(origin, forConnectionsTo: configured)
    let asked = nextHandler ?? handler
    guard
      let (request, chosen) = continued ?? choose(asked, list, at: location)
        ?? choose(handler, list, at: location)
    else { throw .noHandler(list.challenges, at: location) }
    let space = ProtectionSpace(origin, realm: request.challenge.realm)
    try challengeGuard.admit(space)

    isWorking = true
    let generation = generation
    defer { if generation == self.generation { isWorking = false } }
    return continued == nil
      ? try await answerInTurn(request, by: chosen, in: space)
      : try await answerRound(request, by: chosen, in: space)
  }

  /// Notes that the server has refused the last answer by another status than 401, such as 403.
  public func refused() {
    if let sent { settle(at: sent.space.origin, isContinuing: false) }
  }

  /// Notes that the connection has opened: the server has accepted the last answer.
  ///
  /// After `Negotiate`, the context checks the identity of the server by the token in its success. Without an error,
  /// the connection can be used.
  ///
  /// - Parameter fields: the values of the `WWW-Authenticate` fields of the 101 or 200.
  /// - Throws: ``AuthenticationError`` with the code `serverNotAuthenticated`; `cancelled` if the connection has ended.
  ///   The connection must then fail.
  public func opened(_ fields: [String]) async throws(AuthenticationError) {
    guard sent != nil, let round = nextHandler as? NegotiateRound else { return end(.accepted) }
    guard !isWorking else { throw .cancelled(at: round.origin) }
    isWorking = true
    let generation = generation
    do {
      try await round.finish(fields)
    } catch {
      try check(generation, at: round.origin)
      // Who has accepted the answer is not known, so it is no success.
      end(.unanswered)
      throw .serverNotAuthenticated(error, at: round.origin)
    }
    try check(generation, at: round.origin)
    end(.accepted)
  }

  /// Notes that the connection, or an attempt to open it, has ended.
  ///
  /// Each handler's count of refusals begins at 0 again, and a handler that has returned nil is asked again. The counts
  /// of the guard stay.
  public func closed() { end(.unanswered) }
}

extension Authenticator {
  /// Waits for the turn of the connection, and then lets the handler answer, or takes the answer of the one before.
  private func answerInTurn(
    _ request: ChallengeRequest, by handler: any ChallengeHandler, in space: ProtectionSpace
  ) async throws(AuthenticationError) -> Answer {
    let turns = challengeGuard.turns
    let kind = PromptTurns.Kind(
      location: request.location, scheme: request.challenge.scheme,
      handler: Self.identity(of: handler))
    let generation = generation
    switch await turns.take(space, kind) {
    case .own: break
    case .shared(let value):
      try check(generation, at: space.origin)
      return try send(
        ChallengeResponse(authorization: value.authorization.copy()), to: request, in: space)
    case .stopped: throw stop(generation, at: space.origin)
    case .cancelled: throw .cancelled(at: space.origin)
    }
    var outcome = PromptTurns.Outcome.next
    defer { turns.end(space, kind, outcome) }
    try check(generation, at: space.origin)
    // The one before can have used up the attempts.
    try challengeGuard.admit(space)
    guard let response = try await ask(handler, request) else {
      if !Task.isCancelled { outcome = .stopped }
      throw stop(generation, at: space.origin)
    }
    let isShared = response.nextHandler == nil && AuthorizationValue.isField(response.authorization)
    let value = isShared ? PromptTurns.SharedValue(response.authorization.copy()) : nil
    if generation == self.generation {
      let answer = try send(response, to: request, in: space)
      outcome = value.map { .shared($0) } ?? .next
      return answer
    }
    // The connection has ended, but others can use what the user has typed.
    outcome = value.map { .shared($0) } ?? .next
    throw .cancelled(at: space.origin)
  }

  /// Answers the next round of a scheme with several rounds.
  private func answerRound(
    _ request: ChallengeRequest, by handler: any ChallengeHandler, in space: ProtectionSpace
  ) async throws(AuthenticationError) -> Answer {
    let generation = generation
    guard let response = try await ask(handler, request) else {
      throw stop(generation, at: space.origin)
    }
    try check(generation, at: space.origin)
    return try send(response, to: request, in: space)
  }

  /// Lets a handler answer.
  private func ask(
    _ handler: any ChallengeHandler, _ request: ChallengeRequest
  ) async throws(AuthenticationError) -> ChallengeResponse? {
    do {
      return try await handler.handle(request)
    } catch let error as AuthenticationError {
      throw error
    } catch is CancellationError {
      throw .cancelled(at: request.location.origin)
    } catch {
      throw .handlerFailed(error, at: request.location.origin)
    }
  }

  /// The error after a handler has returned nil: no further challenge of this connection is answered.
  private func stop(_ generation: Int, at origin: Origin) -> AuthenticationError {
    if generation == self.generation { isStopped = true }
    return .cancelled(at: origin)
  }

  /// Takes a response as the answer of the connection.
  private func send(
    _ response: consuming ChallengeResponse, to request: ChallengeRequest, in space: ProtectionSpace
  ) throws(AuthenticationError) -> Answer {
    guard AuthorizationValue.isField(response.authorization) else {
      throw .invalidCredentials("an answer consists of visible ASCII characters and single spaces")
    }
    let scheme = request.challenge.scheme
    let isNegotiate = scheme == .negotiate || scheme == .applicationNegotiate
    sent = try challengeGuard.send(response.authorization, to: space, isRepeatable: !isNegotiate)
    nextHandler = response.nextHandler
    roundCount += 1
    log.answers(request.challenge)
    return Answer(
      authorization: response.authorization, scheme: scheme, needsSameConnection: isNegotiate)
  }

  /// An answer for a connection that has ended since is dropped.
  private func check(_ generation: Int, at origin: Origin) throws(AuthenticationError) {
    guard generation == self.generation else { throw .cancelled(at: origin) }
  }

  private static func identity(of handler: any ChallengeHandler) -> ObjectIdentifier? {
    type(of: handler) is AnyClass ? ObjectIdentifier(handler as AnyObject) : nil
  }

  private func end(_ result: SentAnswer.Result) {
    if let sent { challengeGuard.settle(sent, result) }
    sent = nil
    nextHandler = nil
    roundCount = 0
    refusalCount = 0
    isStopped = false
    isWorking = false
    generation += 1
  }

  /// Notes what a 401 says of the answer before it.
  private func settle(at origin: Origin, isContinuing: Bool) {
    guard let answer = sent else { return }
    sent = nil
    let isLeft = answer.space.origin != origin
    challengeGuard.settle(answer, isContinuing || isLeft ? .left : .refused)
    if isContinuing { return }
    roundCount = 0
    // A context that was refused, or has had all its rounds, does not go on. No handler goes on at another origin.
    if isLeft || nextHandler is NegotiateRound { nextHandler = nil }
    if !isLeft {
      refusalCount += 1
      log.refusedCredentials()
    }
  }

  /// The next round of `Negotiate`, if the 401 asks for it.
  private func continuation(
    _ list: ChallengeList, at location: Location
  ) -> (ChallengeRequest, any ChallengeHandler)? {
    guard sent != nil, roundCount < Self.maximumRoundCount,
      let round = nextHandler as? NegotiateRound
    else {
      return nil
    }
    return choose(round, list, at: location)
  }

  /// The strongest challenge that a handler can answer; of equally strong ones, the first.
  private func choose(
    _ handler: any ChallengeHandler, _ list: ChallengeList, at location: Location
  ) -> (ChallengeRequest, any ChallengeHandler)? {
    let sorted = list.challenges.enumerated().sorted {
      ($0.element.scheme.rank, $0.offset) < ($1.element.scheme.rank, $1.offset)
    }
    let requests = sorted.map {
      ChallengeRequest(location: location, challenge: $0.element, refusalCount: refusalCount)
    }
    return requests.first(where: handler.canHandle).map { ($0, handler) }
  }
}
