internal import FileLayer
internal import VaultCrypto

/// A session: a limited time in which every process of this user can open one vault without a
/// password.
///
/// ``Vault/openSession(for:)`` begins a session. The kernel's keyring of the user holds it.
public struct VaultSession: Sendable {
  /// The vault that the session opens.
  public let id: VaultID

  /// The shortest session: 1 second.
  public static let minimumDuration = Duration.seconds(1)
  /// The longest session: 366 days.
  public static let maximumDuration = Duration.seconds(366 * 86_400)

  /// The time since boot at which the session expires.
  let deadline: Duration
  let now: @Sendable () -> Duration

  /// Whether the kernel's keyring of the user holds the session, so that later processes find it too.
  public let isInKernel: Bool

  /// The processes that have just taken the session by their socket, because they do not find it in the kernel.
  ///
  /// Each holds it until its own end. Empty for a session that ``find(_:in:)`` has found.
  public let processIDs: [Int32]

  /// A sentence for each socket that was refused or did not answer.
  package let problems: [String]

  init(
    id: VaultID, deadline: Duration, now: @escaping @Sendable () -> Duration, isInKernel: Bool,
    processIDs: [Int32] = [], problems: [String] = []
  ) {
    self.id = id
    self.deadline = deadline
    self.now = now
    self.isInKernel = isInKernel
    self.processIDs = processIDs
    self.problems = problems
  }

  /// The time until the session expires, unless it is ended earlier; zero after that.
  public var remaining: Duration { max(.zero, deadline - now()) }

  /// Checks whether this process can have sessions, with a temporary key that belongs to no vault.
  ///
  /// - Throws: `sessionsUnavailable` with the reason, if the kernel refuses.
  public static func checkAvailability() throws(VaultError) {
    try checkAvailability(parameters: VaultParameters())
  }

  package static func checkAvailability(parameters: VaultParameters) throws(VaultError) {
    let keyring = parameters.sessionKeyring
    let name = "datavault-probe:\(parameters.random.bytes(count: 8).hexadecimal)"
    try converting(VaultError.sessionsUnavailable) { () throws(KeyringError) in
      try keyring.store(SecretBytes(copying: [0]), as: name, wholeSeconds: 1)
      if case .present(let serial) = try keyring.find(name) { try keyring.revoke(serial) }
    }
  }

  /// The live session of a vault; nil if there is none.
  ///
  /// It does not check whether the session still opens the vault.
  ///
  /// - Throws: `sessionsUnavailable` if the kernel refuses.
  public static func find(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> VaultSession? {
    try await find(id, in: store, parameters: VaultParameters())
  }

  package static func find(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) async throws(VaultError) -> VaultSession? {
    try await onBlockingThread("datavault.sessions") { () throws(VaultError) -> VaultSession? in
      guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters),
        let found = try place.find()
      else { return nil }
      return VaultSession(
        id: id, deadline: found.key.deadline, now: place.now, isInKernel: found.key.isInKernel)
    }
  }

  /// Ends the session of a vault, which can already be deleted.
  ///
  /// Vaults that were opened through it lock within a second, in every process.
  ///
  /// It reaches the kernel's keyring, and the processes that listen on a socket of the home. Each of them also ends a
  /// session that it sees in the kernel, where this process does not.
  ///
  /// - Returns: whether there was a session.
  /// - Throws: `sessionsUnavailable` if no place of a session can be reached: the kernel refuses, or its sessions are
  ///   those of another user, and no process listens; or if a process could not end its session. `busy` if a process
  ///   does not answer, which can then still have the session. `foreignFile`, `permissionsTooOpen` for the directory of
  ///   sockets.
  @discardableResult
  public static func end(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Bool {
    try await end(id, in: store, parameters: VaultParameters()).count > 0
  }

  /// Ends every session of this user, for vaults in every store.
  ///
  /// - Returns: the number of sessions that were ended.
  /// - Throws: the errors of ``end(_:in:)``.
  @discardableResult
  public static func endAll() throws(VaultError) -> Int {
    try endAll(parameters: VaultParameters())
  }

  @discardableResult
  package static func endAll(parameters: VaultParameters) throws(VaultError) -> Int {
    let ended = SessionKeyrings(parameters).endAll(at: nil)
    if let error = ended.refusal ?? ended.failure { throw .sessionsUnavailable(error) }
    return ended.count
  }

  /// As ``end(_:in:)``; without an id for every session of this user, and of the processes of this store's home.
  package static func end(
    _ id: VaultID?, in store: any VaultStore, parameters: VaultParameters = VaultParameters()
  ) async throws(VaultError) -> EndedSessions {
    try await onBlockingThread("datavault.sessions") { () throws(VaultError) in
      var count = 0
      var (refusal, failure): (VaultError?, VaultError?)
      if let id {
        do throws(VaultError) {
          let location = try SessionKeyLocation(of: id, in: store, parameters: parameters)
          count = try location?.end() == true ? 1 : 0
        } catch {
          guard error.code == .sessionsUnavailable else { throw error }
          refusal = error
        }
      } else {
        let ended = SessionKeyrings(parameters).endAll(at: nil)
        count = ended.count
        refusal = ended.refusal.map(VaultError.sessionsUnavailable)
        failure = ended.failure.map(VaultError.sessionsUnavailable)
      }
      let answers = try SessionAnswers(
        to: SessionRequest(id == nil ? .endAll : .end, id), in: store, parameters: parameters)
      count += answers.replies.count { $0.result == .done }
      if answers.isIncomplete {
        throw VaultError(
          .busy, answers.problems.joined(separator: "; "),
          hint: "try again, or end that process: it can still have the session")
      }
      if let reply = answers.replies.first(where: { $0.result == .failed }) {
        throw .processKeptSession(reply)
      }
      if let failure { throw failure }
      if answers.replies.isEmpty, count == 0 {
        if let refusal { throw refusal }
        try RunDirectory.requireOwnHome(of: store)
      }
      return EndedSessions(count: count, processes: answers.processes(at: parameters.sinceBoot()))
    }
  }
}

/// What the end of sessions has found.
package struct EndedSessions: Sendable {
  /// The number of sessions; one that several processes held counts for each of them.
  package let count: Int
  /// The processes of the home that have answered.
  package let processes: [SessionProcess]
}

/// The state of a session, as seen by a vault that was opened through it.
package enum SessionState: Sendable, Equatable {
  case live(SessionKey)
  case ended(SessionEnd)

  /// Decides the state from a keyring entry.
  ///
  /// An entry that is gone before its deadline was revoked, because the keyring remembers expired
  /// entries for some minutes.
  package init(_ entry: KeyringEntry, key: SessionKey, now: Duration) {
    self =
      switch entry {
      case .present where now < key.deadline: .live(key)
      case .absent where now < key.deadline: .ended(.revoked)
      case .present, .absent, .expired: .ended(.expired)
      }
  }
}

/// Why a session ended.
package enum SessionEnd: Sendable, Equatable {
  /// Somebody ended it, for example with `datavault lock`.
  case revoked
  /// Its time expired.
  case expired
}
