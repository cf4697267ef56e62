internal import VaultCrypto

/// A time during which every process of this user may open one vault without a password.
///
/// ``Vault/openSession(for:)`` begins one. It lives in the kernel's keyring of the user.
public struct VaultSession: Sendable {
  /// The vault that it opens.
  public let id: VaultID

  /// The shortest session: 1 second.
  public static let shortest = Duration.seconds(1)
  /// The longest session: 366 days.
  public static let longest = Duration.seconds(366 * 86_400)

  private let deadline: Duration
  private let now: @Sendable () -> Duration

  /// - Parameter deadline: since boot.
  init(id: VaultID, deadline: Duration, now: @escaping @Sendable () -> Duration) {
    self.id = id
    self.deadline = deadline
    self.now = now
  }

  /// How long it still lasts, unless somebody ends it; zero when it is over.
  public var remaining: Duration { max(.zero, deadline - now()) }

  /// Tries whether this process can have sessions at all, by one of no vault.
  ///
  /// - Throws: `sessionsUnavailable` where the kernel refuses, with its reason.
  public static func checkAvailability() throws(VaultError) {
    try checkAvailability(parameters: VaultParameters())
  }

  package static func checkAvailability(parameters: VaultParameters) throws(VaultError) {
    let keyring = parameters.sessionKeyring
    let digits = parameters.random.bytes(count: 8).map { String($0, radix: 16) }
    let name = "datavault-probe:\(digits.joined())"
    do throws(KeyringError) {
      try keyring.store(SecretBytes(copying: [0]), as: name, wholeSeconds: 1)
      if case .present(let serial) = try keyring.find(name) { try keyring.revoke(serial) }
    } catch {
      throw .sessionsUnavailable(error)
    }
  }

  /// The live session of a vault; nil when there is none.
  ///
  /// Whether it still opens the vault is not tried.
  ///
  /// - Throws: `sessionsUnavailable` where the kernel refuses.
  public static func find(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> VaultSession? {
    try await find(id, in: store, parameters: VaultParameters())
  }

  package static func find(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) async throws(VaultError) -> VaultSession? {
    try await VaultOperations(store).session(of: id, parameters: parameters)
  }

  /// Ends the session of a vault, which need not exist any more.
  ///
  /// Vaults that were opened through it lock within half a second, in every process.
  ///
  /// - Returns: whether there was one.
  /// - Throws: `sessionsUnavailable` where the kernel refuses.
  @discardableResult
  public static func end(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Bool {
    try await end(id, in: store, parameters: VaultParameters())
  }

  @discardableResult
  package static func end(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) async throws(VaultError) -> Bool {
    try await VaultOperations(store).endSession(of: id, parameters: parameters)
  }

  /// Ends every session of this user, of vaults in every store.
  ///
  /// - Returns: how many there were.
  /// - Throws: as ``end(_:in:)``.
  @discardableResult
  public static func endAll() throws(VaultError) -> Int {
    try endAll(parameters: VaultParameters())
  }

  @discardableResult
  package static func endAll(parameters: VaultParameters) throws(VaultError) -> Int {
    do throws(KeyringError) {
      let keyring = parameters.sessionKeyring
      let serials = try keyring.serials(withPrefix: SessionKeyLocation.prefix)
      var failure: KeyringError?
      for serial in serials {
        // One that cannot be ended must not save those behind it.
        do throws(KeyringError) { try keyring.revoke(serial) } catch { failure = error }
      }
      if let failure { throw failure }
      return serials.count
    } catch {
      throw .sessionsUnavailable(error)
    }
  }
}

/// What a vault that was opened through a session finds when it looks again.
package enum SessionState: Sendable, Equatable {
  case live(SessionKey)
  case over(SessionEnd)

  /// Decides on what the keyring says.
  ///
  /// An entry that is gone before its time was revoked: the keyring remembers for some minutes
  /// which have expired.
  package init(_ entry: KeyringEntry, key: SessionKey, now: Duration) {
    self =
      switch entry {
      case .present where now < key.deadline: .live(key)
      case .absent where now < key.deadline: .over(.ended)
      case .present, .absent, .expired: .over(.expired)
      }
  }
}

/// How a session went.
package enum SessionEnd: Sendable, Equatable {
  /// Somebody ended it: `datavault lock`.
  case ended
  /// Its time was over.
  case expired
}
