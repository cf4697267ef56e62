internal import AccessControl
internal import ApplicationStore
internal import FileLayer
internal import Foundation
internal import NIOCore
internal import Synchronization
internal import VaultCrypto

/// Where a login comes from: an address, which names a network for IPv6, or this machine's sockets.
struct LoginSource: Sendable, Hashable {
  private let address: SocketAddress?

  /// - Parameter address: nil for a Unix socket.
  init(_ address: SocketAddress?) { self.address = address }

  /// What failures are counted by: an IPv4 address, the first 64 bits of an IPv6 address, or `local`.
  ///
  /// A household or a machine has the /64. Many people can share an IPv4 network, so each address counts.
  var text: String { prefix(ofIPv4: 4, ofIPv6: 8) }

  /// What the places of attempts under way are bounded by: the /24 of an IPv4 address, the /48 of an IPv6 address.
  var network: String { prefix(ofIPv4: 3, ofIPv6: 6) }

  private func prefix(ofIPv4 count4: Int, ofIPv6 count6: Int) -> String {
    guard let text = address?.ipAddress, let bytes = IPRange.bytes(text) else { return "local" }
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    if bytes.count == 4 || bytes.starts(with: mapped) {
      return bytes.suffix(4).prefix(count4).map(String.init).joined(separator: ".")
    }
    return bytes.prefix(count6).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// Checks passwords: a few derivations at a time, never more than a bounded number that wait, and none for who must
/// wait.
final class LoginGate: Sendable {
  enum Outcome: Sendable, Hashable {
    case right, wrong
    /// Too many failures: the next attempt can come after so many seconds.
    case wait(seconds: Int)
    /// Too many attempts are under way, or the check failed.
    case busy
  }

  private struct State: ~Copyable {
    var ledger: LoginLedger
    var cache = LoginCache()
    /// Checks under way, so that clients that connect together derive one key.
    var checks: [LoginCache.Entry: Task<Outcome, Never>] = [:]
    var derivationCount = 0
  }

  private let realm: RealmHasher
  /// Half of the cores, and a thread more for users who are known at their source.
  private let derivations = (0..<max(1, min(4, System.coreCount / 2))).map { _ in Derivation() }
  private let knownDerivation = Derivation()
  private let state: Mutex<State>
  private let now: @Sendable () -> Date

  /// - Parameter failures: what an earlier server has saved.
  init(
    _ realm: RealmHasher, failures: [LoginLedger.Record] = [], now: @escaping @Sendable () -> Date
  ) {
    self.realm = realm
    self.now = now
    state = Mutex(State(ledger: LoginLedger(failures)))
  }

  /// How many keys were derived.
  var derivationCount: Int { state.withLock { $0.derivationCount } }

  /// Whether a password is that of a user.
  ///
  /// - Parameter verifier: nil for a user that does not exist, who costs the same.
  func check(
    _ password: Password, _ verifier: PasswordVerifier?, of user: Name, in id: ApplicationID,
    from source: LoginSource
  ) async throws -> Outcome {
    let attempt = try realm.attempt(by: user, of: id, from: source.text, in: source.network)
    let now = now()
    let (outcome, check) = try state.withLock { state -> (Outcome, Task<Outcome, Never>?) in
      let entry = try state.cache.entry(password, verifier, attempt)
      if state.cache.confirms(entry, at: now) { return (.right, nil) }
      if let check = state.checks[entry] { return (.busy, check) }
      let isKnown = state.ledger.isKnown(attempt, at: now)
      switch state.ledger.begin(attempt, at: now) {
      case .wait(let seconds): return (.wait(seconds: seconds), nil)
      case .busy: return (.busy, nil)
      case .check: break
      }
      state.derivationCount += 1
      let derivation =
        isKnown ? knownDerivation : derivations[state.derivationCount % derivations.count]
      let check = Task { [self] in
        let isRight = try? await derivation.run { [realm] () throws(CryptoError) in
          try realm.matches(password, verifier, user: user, of: id)
        }
        end(attempt, entry, isRight: isRight ?? false)
        return isRight.map { $0 ? Outcome.right : .wrong } ?? .busy
      }
      state.checks[entry] = check
      return (.busy, check)
    }
    return await check?.value ?? outcome
  }

  private func end(_ attempt: LoginAttempt, _ entry: LoginCache.Entry, isRight: Bool) {
    let now = now()
    state.withLock { state in
      state.checks[entry] = nil
      state.ledger.end(attempt, succeeded: isRight)
      if isRight { state.cache.put(entry, at: now) }
    }
  }

  /// Saves what has changed since the last call; call it at most once a second.
  func save(to store: ApplicationStore) async throws {
    let (stored, removed) = state.withLock { $0.ledger.takeUnsaved() }
    if stored.isEmpty, removed.isEmpty { return }
    try await store.saveLoginFailures(stored, removing: removed)
  }
}

/// Derives keys on a thread of its own, one after the other.
private actor Derivation: BlockingActor {
  let executor = BlockingExecutor(label: "datavault.login")

  func run<Value: Sendable, Failure: Error>(
    _ work: @Sendable () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try work()
  }
}

/// What credentials come to.
enum LoginResult: Sendable {
  case principal(Principal)
  /// Wrong, or of a scheme that the application does not take.
  case wrong
  /// Others on the way could read them.
  case unprotected
  case wait(seconds: Int)
  case busy
}

extension OpenHome {
  /// The credentials of a request that count; nil if it has none, or a password where there are no users.
  func authorization(
    of request: HTTPRequest, to application: DirectoryEntry
  ) -> Authorization? {
    guard let authorization = request.authorization else { return nil }
    if case .token = authorization { return authorization }
    return directory.hasUsers(application.id) ? authorization : nil
  }

  /// Finds out who asks, by credentials of HTTP or of a protocol with the same: STOMP's `login` and `passcode` are
  /// a user and a password.
  ///
  /// - Parameters:
  ///   - userID: the user id that the caller sends with a token.
  ///   - isProtected: whether no one on the way can read them; otherwise they are refused.
  func login(
    _ authorization: Authorization, to application: DirectoryEntry, from source: LoginSource,
    userID: String? = nil, isProtected: Bool
  ) async -> LoginResult {
    guard isProtected else { return .unprotected }
    do {
      switch authorization {
      case .malformed, .otherScheme: return .wrong
      case .token(let text):
        guard case .token(let token) = try application.signer.read(text) else { return .wrong }
        return .principal(.token(token, userID: userID))
      case .password(let user, let password):
        let verifier = directory.verifier(of: user, of: application.id)
        return
          switch try await logins.check(
            password, verifier, of: user, in: application.id, from: source)
        {
        case .right: .principal(.user(user, password: verifier?.version))
        case .wrong: .wrong
        case .wait(let seconds): .wait(seconds: seconds)
        case .busy: .busy
        }
      }
    } catch {
      return .busy
    }
  }

  /// The challenges for a caller without credentials, or with wrong ones; none where they would not help.
  func challenges(of application: DirectoryEntry, isProtected: Bool) -> [Challenge] {
    guard isProtected, directory.hasUsers(application.id) else { return [] }
    return challenges(ofCredentialsFor: application)
  }

  /// The challenges after credentials that are wrong, or missing where only they help; without users a token does.
  func challenges(ofCredentialsFor application: DirectoryEntry) -> [Challenge] {
    let realm = application.application.name
    return directory.hasUsers(application.id)
      ? Challenge.all(realm: realm) : [Challenge(.applicationToken, realm: realm)]
  }
}
