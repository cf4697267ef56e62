internal import Synchronization
internal import VaultCrypto

/// A security context of GSSAPI while it is established, for one connection (RFC 4559).
///
/// This library has no GSSAPI of its own: the module NegotiateAuthentication, or the application, implements the
/// protocol.
public protocol NegotiateContext: Sendable {
  /// Makes the next token of the client.
  ///
  /// - Parameter serverToken: nil in the first round, then what the server sent.
  /// - Returns: the token that goes to the server; it is wiped when it was sent.
  mutating func next(serverToken: [UInt8]?) async throws -> [UInt8]

  /// Takes the server's last token, which comes with its success, and checks that the server has proved its identity.
  ///
  /// - Parameter serverToken: nil if the success has none.
  /// - Throws: any error if the server has not proved its identity; the connection then fails.
  mutating func finish(serverToken: [UInt8]?) async throws
}

/// Answers `Negotiate` (RFC 4559) and Kaazing's `Application Negotiate` with the tokens of a security context.
///
/// Each authentication gets a context of its own. The rounds after the first one continue it: the response's next
/// handler holds the context, and answers only the same scheme of the same origin. `Negotiate` authenticates the
/// connection, so all rounds must go over the same one.
public struct NegotiateChallengeHandler: ChallengeHandler {
  private let schemes: Set<Challenge.Scheme>
  private let makeContext: @Sendable (Origin) async throws -> (any NegotiateContext)?

  /// Makes a handler.
  ///
  /// - Parameters:
  ///   - schemes: `Negotiate` and `Application Negotiate` by default.
  ///   - makeContext: makes the context for an origin, whose service is usually `HTTP@` and the host; nil ends the
  ///     authentication.
  public init(
    schemes: Set<Challenge.Scheme> = [.negotiate, .applicationNegotiate],
    makeContext: @escaping @Sendable (Origin) async throws -> (any NegotiateContext)?
  ) {
    self.schemes = schemes
    self.makeContext = makeContext
  }

  /// Whether the scheme is one of the handler's, and the challenge begins an authentication: it has no data.
  public func canHandle(_ request: ChallengeRequest) -> Bool {
    schemes.contains(request.challenge.scheme) && request.challenge.token68 == nil
  }

  /// Makes a context and returns its first token.
  ///
  /// - Throws: the error of the closure or of the context.
  public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
    let origin = request.location.origin
    guard canHandle(request), let context = try await makeContext(origin) else { return nil }
    return try await NegotiateRound.answer(
      context, serverToken: nil, scheme: request.challenge.scheme, origin: origin)
  }
}

/// The next round of a context that has begun.
final class NegotiateRound: ChallengeHandler {
  private let scheme: Challenge.Scheme
  let origin: Origin
  /// Nil after the round, whose context is then in the next one.
  private let context: Mutex<(any NegotiateContext)?>

  private init(_ context: any NegotiateContext, scheme: Challenge.Scheme, origin: Origin) {
    self.context = Mutex(context)
    self.scheme = scheme
    self.origin = origin
  }

  func canHandle(_ request: ChallengeRequest) -> Bool {
    request.challenge.scheme == scheme && request.location.origin == origin
      && Self.serverToken(request.challenge) != nil && context.withLock { $0 != nil }
  }

  func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
    guard request.challenge.scheme == scheme, request.location.origin == origin,
      let token = Self.serverToken(request.challenge), let context = context.withLock({ $0.take() })
    else { return nil }
    return try await Self.answer(context, serverToken: token, scheme: scheme, origin: origin)
  }

  /// Lets the context check the success of the server, whose fields these are.
  func finish(_ fields: [String]) async throws {
    guard var context = context.withLock({ $0.take() }) else { throw CancellationError() }
    let challenge = ChallengeList(fields).challenges.first { $0.scheme == scheme }
    try await context.finish(serverToken: challenge.flatMap(Self.serverToken))
  }

  static func answer(
    _ context: any NegotiateContext, serverToken: [UInt8]?, scheme: Challenge.Scheme, origin: Origin
  ) async throws -> ChallengeResponse {
    var context = context
    var token = try await context.next(serverToken: serverToken)
    defer { wipe(&token) }
    return ChallengeResponse(
      authorization: AuthorizationValue.base64(scheme, unsafe token.span.bytes),
      nextHandler: NegotiateRound(context, scheme: scheme, origin: origin))
  }

  private static func serverToken(_ challenge: Challenge) -> [UInt8]? {
    challenge.token68.flatMap(AuthorizationValue.decodeBase64)
  }
}
