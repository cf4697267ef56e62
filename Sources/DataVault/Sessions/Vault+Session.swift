internal import FileLayer
internal import Synchronization
internal import VaultCrypto

/// Opening a vault without its password, during a session.
extension Vault {
  /// Lets every process of this user open the vault without a password for a limited time.
  ///
  /// The content key goes into the kernel's keyring of this user, with a timeout that the kernel
  /// enforces. It also goes to each process that waits for it on a socket of the home and does not see that keyring,
  /// as in a container. `docs/explanation/sessions.md` says who can read it. An earlier session of this vault ends, and
  /// this one replaces it. The session ends when its time expires, with
  /// ``VaultSession/end(_:in:)``, when the vault gets new keys or is deleted, and when the machine
  /// restarts. ``lock()`` does not end it.
  ///
  /// - Parameter duration: 1 second to 366 days.
  /// - Throws: `sessionsUnavailable` if the kernel refuses, as it does in many containers, and no process takes the
  ///   session by its socket; `invalidArgument`, `locked`; the errors of reading.
  @discardableResult
  public func openSession(for duration: Duration) throws(VaultError) -> VaultSession {
    guard (VaultSession.minimumDuration...VaultSession.maximumDuration).contains(duration) else {
      throw VaultError(
        .invalidArgument, "the duration of a session is not from 1 second to 366 days")
    }
    guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters) else {
      throw VaultError(
        .sessionsUnavailable,
        "vault '\(id)' is not accessible to other processes (\(store.location(of: id)))")
    }
    let session = try withContents { (opened) throws(VaultError) in
      try begin(with: opened.contentKey, for: duration, at: place)
    }
    try requireKeysOfSession()
    return session
  }

  /// Stores a session in the kernel, and hands it to the processes that do not find it there.
  private func begin(
    with contentKey: borrowing SecretBytes, for duration: Duration, at place: SessionKeyLocation
  ) throws(VaultError) -> VaultSession {
    let deadline = place.now() + duration
    let payload = LiveSession.payload(deadline: deadline, contentKey: contentKey)
    // Before the kernel has the session: a lock that ends it there must come after this unlock for the listeners too.
    let listeners = Result { () throws(VaultError) in try SessionListeners(of: store) }
    var refusal: VaultError?
    do throws(VaultError) {
      try place.open(payload, for: duration)
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      refusal = error
    }
    // The directory of sockets must not be an obstacle where the kernel has the session.
    var replies: [SessionReply] = []
    var problems: [String] = []
    do throws(VaultError) {
      let answers = SessionAnswers(
        to: SessionRequest(opening: id, payload: payload), from: try listeners.get(),
        before: .now + parameters.socketTimeLimit)
      (replies, problems) = (answers.replies, answers.problems)
    } catch {
      if refusal != nil { throw error }
      problems = [error.message]
    }
    let processIDs = replies.filter { $0.result == .done }.map(\.processID).sorted()
    let isInKernel = refusal == nil && place.kernelHolds(payload)
    if !isInKernel, processIDs.isEmpty {
      guard let refusal else { throw .sessionReplaced(of: id) }
      guard let reply = replies.first else { throw refusal }
      throw .noProcessTookSession(of: id, reply, refusal)
    }
    return VaultSession(
      id: id, deadline: deadline, now: place.now, isInKernel: isInKernel,
      processIDs: processIDs, problems: problems)
  }

  /// Ends the session that this vault has just begun if the vault has new keys or was deleted.
  ///
  /// The process that changed the keys looked for a session before this one existed.
  private func requireKeysOfSession() throws(VaultError) {
    do throws(VaultError) {
      try withContents { (_) throws(VaultError) in }
    } catch {
      if error.code == .doesNotExist {
        store.endSession(of: id, parameters: parameters)
      } else if let file = try? readFile() {
        endSession(unlessOpening: file.key)
      }
      throw error
    }
  }

  /// Opens the vault through a session, if there is one.
  ///
  /// An unlocked vault stays unlocked and unchanged, as with an unlock. This is not an attempt and
  /// needs no derivation. When the session ends, the vault locks within a second.
  ///
  /// - Returns: whether the vault is now unlocked; false if there is no session or the kernel
  ///   refuses sessions.
  /// - Throws: `sessionStale` if the vault has new keys since the session began, which ends the
  ///   session; the errors of reading.
  public func unlockWithSession() throws(VaultError) -> Bool {
    try unlockWithSession(endsStaleSession: true)
  }

  /// As ``unlockWithSession()``.
  ///
  /// - Parameter endsStaleSession: false to leave a session that opens nothing to a later command, which reports it.
  package func unlockWithSession(endsStaleSession: Bool) throws(VaultError) -> Bool {
    do throws(VaultError) {
      return try unlockWithAvailableSession(endsStaleSession: endsStaleSession)
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      return false
    }
  }

  /// As ``unlockWithSession()``, but throws `sessionsUnavailable`.
  func unlockWithAvailableSession(endsStaleSession: Bool = true) throws(VaultError) -> Bool {
    if !isLocked { return true }
    guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters),
      let session = try place.find()
    else { return false }
    try unlock(with: session, at: place, endsStaleSession: endsStaleSession)
    return true
  }

  private func unlock(
    with session: borrowing LiveSession, at place: SessionKeyLocation, endsStaleSession: Bool
  ) throws(VaultError) {
    let file = try readFile()
    guard file.key.opens(with: session.contentKey) else {
      // The session can never open the vault again.
      if endsStaleSession { try? place.revoke(session.key.holder) }
      throw VaultError(
        .sessionStale,
        "the session of vault '\(id)' was ended: the vault has new keys since it began",
        hint: "unlock it again")
    }
    adopt(try open(file, contentKey: session.contentKey.copy()))
    watch(session.key, at: place)
  }

  // MARK: The end of a session

  /// Locks the vault when the session ends.
  private func watch(_ key: SessionKey, at place: SessionKeyLocation) {
    leaveSessionUnlocked()
    let number = sessionNumber
    isInSession.store(true, ordering: .releasing)
    sessionWatch = SessionWatch(place, key) { [weak self] event in
      await self?.handle(event, number: number)
    }
  }

  private func handle(_ event: SessionEvent, number: Int) async {
    guard number == sessionNumber else { return }
    switch event {
    case .began: isInSession.store(true, ordering: .releasing)
    case .ended(.expired):
      isInSession.store(false, ordering: .releasing)
      close(because: .session)
    case .ended(.revoked):
      wasLockedFromOutside.store(true, ordering: .releasing)
      await lock(because: .session, closingTimeout: Self.outsideClosingTimeout)
      if number == sessionNumber { leaveSession() }
    }
  }

  /// Ends this vault's session if it does not open the vault's new keys.
  ///
  /// Other objects that were opened through the session are then locked out without waiting for
  /// their next operation; this object stays unlocked. If the kernel refuses, there is no session.
  func endSession(unlessOpening key: KeyEnvelope) {
    guard let place = try? SessionKeyLocation(of: id, in: store, parameters: parameters) else {
      return
    }
    if let found = try? place.find(), !key.opens(with: found.contentKey), sessionWatch != nil {
      leaveSessionUnlocked()
    }
    _ = try? place.end(unlessOpening: key)
    store.checkSessionsOfProcesses(of: id, parameters: parameters)
  }

  /// Detaches the vault from its session.
  func leaveSession() {
    sessionNumber += 1
    sessionWatch = nil
    isInSession.store(false, ordering: .releasing)
  }

  /// Leaves the session; the vault is unlocked without it.
  func leaveSessionUnlocked() {
    leaveSession()
    wasLockedFromOutside.store(false, ordering: .releasing)
  }

  /// Whether the vault was locked because somebody ended the session that opened it.
  ///
  /// An expired session also locks the vault, but does not set this: a timeout is not an outage.
  package nonisolated var isLockedFromOutside: Bool {
    wasLockedFromOutside.load(ordering: .acquiring)
  }

  /// Whether the end of a session locks the vault and closes its dependents.
  ///
  /// For a vault that has dependents this is also true after its lock timeout, and from the next session on after one
  /// that has expired: its dependents continue, and somebody must be able to end them.
  package nonisolated var endsWithSession: Bool { isInSession.load(ordering: .acquiring) }
}

extension Vault {
  /// Waits until a session opens the vault, for example through `datavault unlock`.
  ///
  /// It looks four times a second. It ends a stale session and waits for another one. If the vault
  /// is unlocked by other means, the wait ends too.
  ///
  /// - Parameter timeout: the longest wait, on the boot clock; zero looks once.
  /// - Returns: whether the vault is now unlocked; false after the timeout or when the task is
  ///   cancelled.
  /// - Throws: `sessionsUnavailable` if the kernel refuses and this process has no socket, because no session could
  ///   ever begin; the errors of reading.
  public nonisolated func unlockWithSession(
    waitingUpTo timeout: Duration
  ) async throws(VaultError) -> Bool {
    let start = ContinuousClock.now
    while true {
      do throws(VaultError) {
        if try await unlockWithAvailableSession() { return true }
      } catch {
        guard error.code == .sessionStale else { throw error }
      }
      let remaining = timeout - start.duration(to: .now)
      guard remaining > .zero else { return false }
      do {
        try await Task.sleep(
          for: min(SessionWatch.interval, remaining), clock: .continuous)
      } catch {
        return false
      }
    }
  }
}

/// What a ``SessionWatch`` sees.
enum SessionEvent: Sendable {
  /// A session has begun after one that had expired.
  case began
  case ended(SessionEnd)
}

/// Follows the sessions of a vault, from the one that opened it, until somebody ends one.
///
/// The kernel does not report that a key was revoked (keyctl(2) has `KEYCTL_WATCH_KEY`, which
/// distributions leave out). The watch therefore asks four times a second, with two system calls.
final class SessionWatch: Sendable {
  static let interval = Duration.milliseconds(250)

  private let task: Task<Void, Never>

  /// - Parameter tell: called for each event; the last is the end of a session that has not expired.
  init(
    _ place: SessionKeyLocation, _ key: SessionKey,
    tell: @escaping @Sendable (SessionEvent) async -> Void
  ) {
    task = Task.detached(priority: .high) {
      var known = Optional(key)
      // The sessions that this process was told of, up to the known one.
      var toldCount = place.toldCount
      while (try? await Task.sleep(for: Self.interval, clock: .continuous)) != nil {
        let count = place.toldCount
        let state = known.map(place.look) ?? .ended(.expired)
        switch state {
        case .live(let renewed): known = renewed
        case .ended(.revoked): return await tell(.ended(.revoked))
        case .ended(.expired):
          if known != nil { await tell(.ended(.expired)) }
          known = (try? place.find())?.key
          if known != nil {
            await tell(.began)
          } else if count > toldCount {
            // One has begun and ended since the last look.
            await tell(.began)
            return await tell(.ended(.revoked))
          }
        }
        toldCount = count
      }
    }
  }

  deinit {
    task.cancel()
  }
}
