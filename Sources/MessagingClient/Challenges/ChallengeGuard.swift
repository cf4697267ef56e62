internal import Synchronization
internal import VaultCrypto

/// The library's own limits of what is sent to whom: a client keeps one guard for all its connections and
/// reconnections.
///
/// A login handler can count attempts itself, but its count ends with the connection. The guard's count lasts, so that
/// a wrong password with automatic reconnection ends in an error instead of a locked account.
///
/// It holds for each protection space, which is an origin and a realm (RFC 9110, 11.5):
///
/// - After ``Limits/refusalLimit`` refusals no answer is sent until ``Limits/pause`` has passed since the last one.
/// - Credentials that were refused are not sent again before a ``reset()``. The guard remembers the last 64 as
///   HMAC-SHA-256 under a random key of its own, and compares in constant time.
/// - Only one handler at a time works, so that the user sees one prompt. Connections to the same location with the same
///   handler object share its result; the others wait for their turn.
///
/// Credentials go only to the origin of a connection's URL, and not over plain HTTP, except to this machine.
public final class ChallengeGuard: Sendable {
  /// The limits.
  public struct Limits: Sendable {
    /// How many answers of a protection space can be refused before a pause; 3 by default, at least 1.
    public var refusalLimit = 3
    /// How long no answer is sent after that; 15 minutes by default.
    ///
    /// Refusals older than this no longer count.
    public var pause = Duration.seconds(900)
    /// How many answers in a row can end without a result, because the connection ended; 10 by default.
    ///
    /// A server can close the connection instead of refusing a password.
    public var unansweredLimit = 10
    /// Whether credentials also go to other machines by `http` and `ws`; false by default.
    ///
    /// Everyone on the way can read them there.
    public var sendsCredentialsOverPlainHTTPBeyondLoopback = false

    /// Makes the default limits.
    public init() {}
  }

  /// The most realms of one origin with refusals at the same time: a server can send another realm each time.
  static let maximumRealmCount = 16

  private struct State {
    var ledgers: [Origin: RefusalLedger] = [:]
    /// The other origins that the connections to an origin trust.
    var allowed: [Origin: Set<Origin>] = [:]
  }

  /// The limits.
  public let limits: Limits

  let turns = PromptTurns()
  private let key = SecretBytes.random(byteCount: 32)
  private let now: @Sendable () -> Duration
  private let state = Mutex(State())

  /// Makes a guard.
  ///
  /// - Parameters:
  ///   - limits: the default limits if left out.
  ///   - clock: measures the pauses; by default the continuous clock, which also counts while the machine sleeps.
  public init(_ limits: Limits = Limits(), clock: any Clock<Duration> = ContinuousClock()) {
    self.limits = limits
    now = Self.time(clock)
  }

  /// A function that gives the time since this call.
  private static func time(_ clock: some Clock<Duration>) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  /// Lets connections to one origin also send credentials to another one, such as the target of a redirect.
  ///
  /// It does not allow plain HTTP.
  public func allow(_ origin: Origin, forConnectionsTo configured: Origin) {
    state.withLock { _ = $0.allowed[configured, default: []].insert(origin) }
  }

  /// Forgets all refusals: call it when the user has corrected the password.
  public func reset() {
    state.withLock { state in
      for origin in Array(state.ledgers.keys) { state.ledgers[origin]?.reset() }
    }
  }

  /// Forgets the refusals of an origin.
  public func reset(_ origin: Origin) {
    state.withLock { $0.ledgers[origin]?.reset() }
  }

  /// How many answers of a protection space were refused within ``Limits/pause``.
  public func refusalCount(at origin: Origin, realm: String?) -> Int {
    let now = now()
    return state.withLock { state in
      state.ledgers[origin]?.count(RefusalLedger.Realm(realm), limits, at: now) ?? 0
    }
  }

  /// Whether credentials can go to an origin at all.
  func permit(_ origin: Origin, forConnectionsTo configured: Origin) throws(AuthenticationError) {
    let isAllowed =
      origin == configured || state.withLock { $0.allowed[configured]?.contains(origin) ?? false }
    guard isAllowed else { throw .foreignOrigin(origin, of: configured) }
    guard
      origin.isProtected || origin.isLoopback || limits.sendsCredentialsOverPlainHTTPBeyondLoopback
    else {
      throw .notProtected(origin)
    }
  }

  /// Whether a handler can be asked for an answer now.
  func admit(_ space: ProtectionSpace) throws(AuthenticationError) {
    let now = now()
    let wait = state.withLock { $0.ledgers[space.origin]?.wait(space.realm, limits, at: now) }
    if let wait = wait ?? nil { throw .tooManyAttempts(at: space.origin, retryAfter: wait) }
  }

  /// Notes that an answer goes to the server.
  ///
  /// - Parameter isRepeatable: whether equal answers mean equal credentials, as for all schemes but `Negotiate`.
  func send(
    _ authorization: borrowing SecretBytes, to space: ProtectionSpace, isRepeatable: Bool
  ) throws(AuthenticationError) -> SentAnswer {
    let answer = SentAnswer(space: space, tag: isRepeatable ? try tag(authorization) : nil)
    let now = now()
    let refusal = state.withLock { state in
      state.ledgers[space.origin, default: RefusalLedger()].send(answer, limits, at: now)
    }
    switch refusal {
    case nil: return answer
    case .refusedBefore: throw .refused(at: space.origin)
    case .wait(let time): throw .tooManyAttempts(at: space.origin, retryAfter: time)
    }
  }

  /// Notes what became of an answer.
  func settle(_ answer: SentAnswer, _ result: SentAnswer.Result) {
    let now = now()
    state.withLock { $0.ledgers[answer.space.origin]?.settle(answer, result, limits, at: now) }
  }

  /// What the credentials of a value are compared by.
  ///
  /// The scheme is left out: `Basic` and `Application Basic` send the same password.
  private func tag(_ authorization: borrowing SecretBytes) throws(AuthenticationError) -> [UInt8] {
    let credentials = authorization.copy(authorization.credentialsRange)
    do {
      return try credentials.withBytes { (bytes) throws(CryptoError) in
        try HMAC.sha256(key: key, message: bytes)
      }
    } catch {
      throw .library(error)
    }
  }
}

/// An origin and a realm (RFC 9110, 11.5).
struct ProtectionSpace: Hashable, Sendable {
  let origin: Origin
  let realm: RefusalLedger.Realm

  init(_ origin: Origin, realm: String?) {
    self.origin = origin
    self.realm = RefusalLedger.Realm(realm)
  }
}

/// An answer that was sent, without its credentials.
struct SentAnswer: Sendable {
  enum Result: Sendable {
    case refused, accepted
    /// The connection ended before the server said anything.
    case unanswered
    /// The connection asks another server now.
    case left
  }

  let space: ProtectionSpace
  /// HMAC-SHA-256 of the credentials; nil for those that differ each time.
  let tag: [UInt8]?
}
