internal import FileLayer
internal import Synchronization
internal import VaultCrypto

/// Opening a vault without its password, while a session lasts.
extension Vault {
  /// Lets every process of this user open the vault without a password for a while.
  ///
  /// What opens the vault goes into the kernel's keyring of this user, with a timeout that the
  /// kernel enforces; `docs/explanation/sessions.md` says who can read it. A session of this vault that is
  /// there already ends, and this one takes its place. It ends with its time, with
  /// ``VaultSession/end(_:in:)``, when the vault gets new keys or is deleted, and when the machine
  /// restarts; ``lock()`` does not end it.
  ///
  /// - Parameter duration: 1 second to 366 days.
  /// - Throws: `sessionsUnavailable` where the kernel refuses, as it does in many containers;
  ///   `invalidArgument`, `locked`; what reading throws.
  @discardableResult
  public func openSession(for duration: Duration) throws(VaultError) -> VaultSession {
    guard (VaultSession.shortest...VaultSession.longest).contains(duration) else {
      throw VaultError(.invalidArgument, "a session lasts 1 second to 366 days")
    }
    guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters) else {
      throw VaultError(
        .sessionsUnavailable,
        "no other process could open vault '\(id)' (\(store.location(of: id)))")
    }
    let session = try withContents { (open) throws(VaultError) in
      do throws(KeyringError) {
        let deadline = try place.open(with: open.contentKey, for: duration)
        return VaultSession(id: id, deadline: deadline, now: place.now)
      } catch {
        throw .sessionsUnavailable(error)
      }
    }
    try requireKeysOfSession()
    return session
  }

  /// Ends the session that this vault has just begun if the vault has got new keys meanwhile, or is
  /// gone: whoever did that has looked for a session before there was one.
  private func requireKeysOfSession() throws(VaultError) {
    do throws(VaultError) {
      try withContents { (_) throws(VaultError) in }
    } catch {
      if error.code == .doesNotExist {
        endSession()
      } else if let file = try? readFile() {
        endSession(unlessOpening: file.key)
      }
      throw error
    }
  }

  /// Opens the vault through a session, where there is one.
  ///
  /// Like an unlock it leaves an unlocked vault as it is; unlike one it is no attempt, and costs
  /// no derivation. When the session is over, the vault locks within half a second.
  ///
  /// - Returns: whether the vault is unlocked now. It is not when there is no session, or when the
  ///   kernel has none to offer.
  /// - Throws: `sessionStale` when the vault has got new keys since; the session is ended then. What
  ///   reading throws.
  public func unlockWithSession() throws(VaultError) -> Bool {
    do throws(VaultError) {
      return try unlockWithAvailableSession()
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      return false
    }
  }

  /// As ``unlockWithSession()``, but `sessionsUnavailable` is an error.
  func unlockWithAvailableSession() throws(VaultError) -> Bool {
    if !isLocked { return true }
    guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters) else {
      return false
    }
    let found: LiveSession?
    do throws(KeyringError) {
      found = try place.find()
    } catch {
      throw .sessionsUnavailable(error)
    }
    guard let session = consume found else { return false }
    try unlock(with: session, at: place)
    return true
  }

  private func unlock(
    with session: borrowing LiveSession, at place: SessionKeyLocation
  ) throws(VaultError) {
    let file = try readFile()
    guard file.key.opens(with: session.contentKey) else {
      // It will never open anything again.
      try? place.keyring.revoke(session.key.serial)
      throw VaultError(
        .sessionStale, "vault '\(id)' has new keys since its session began: the session is ended",
        hint: "unlock it again")
    }
    adopt(try open(file, contentKey: session.contentKey.copy()))
    watch(session.key, at: place)
  }

  // MARK: The end of a session

  /// Locks the vault when the session is over.
  private func watch(_ key: SessionKey, at place: SessionKeyLocation) {
    unlockedOtherwise()
    let number = sessionNumber
    sessionWatch = SessionWatch(place, key) { [weak self] end in
      await self?.sessionIsOver(end, number: number)
    }
  }

  private func sessionIsOver(_ end: SessionEnd, number: Int) async {
    guard number == sessionNumber else { return }
    guard end == .ended else { return close(because: .session) }
    wasLockedFromOutside.store(true, ordering: .releasing)
    await lock(because: .session, patience: Self.outsideLockPatience)
  }

  /// Ends this vault's session, if there is one: the vault is gone.
  func endSession() {
    _ = try? SessionKeyLocation(of: id, in: store, parameters: parameters)?.end()
  }

  /// Ends this vault's session if it does not open the vault's new keys.
  ///
  /// Whoever opened the vault through it is locked out at once, not at its next use; this object
  /// stays as it is. Where the kernel refuses, there is no session.
  func endSession(unlessOpening key: KeyEnvelope) {
    guard let place = try? SessionKeyLocation(of: id, in: store, parameters: parameters),
      let found = try? place.find()
    else { return }
    guard !key.opens(with: found.contentKey) else { return }
    if sessionWatch != nil { unlockedOtherwise() }
    try? place.keyring.revoke(found.key.serial)
  }

  /// From here on no session has a say in whether the vault is open.
  func leaveSession() {
    sessionNumber += 1
    sessionWatch = nil
  }

  /// The vault is open, and not through the session that it may have been opened through before.
  func unlockedOtherwise() {
    leaveSession()
    wasLockedFromOutside.store(false, ordering: .releasing)
  }

  /// Whether the vault was opened through a session that somebody has ended since.
  ///
  /// An expired session locks the vault too, but tells nobody else: a timeout is no outage.
  package nonisolated var isLockedFromOutside: Bool {
    wasLockedFromOutside.load(ordering: .acquiring)
  }
}

extension KeyEnvelope {
  fileprivate func opens(with contentKey: borrowing SecretBytes) -> Bool {
    do throws(FormatFault) {
      _ = try vaultKey(contentKey: contentKey)
      return true
    } catch {
      return false
    }
  }
}

extension Vault {
  /// Waits until a session opens the vault: until somebody runs `datavault unlock`.
  ///
  /// Looks four times a second. A stale session is ended, and waited on for another. A vault that
  /// is unlocked in another way meanwhile ends the wait as well.
  ///
  /// - Parameter timeout: how long, on the boot clock; zero looks once.
  /// - Returns: whether the vault is unlocked now. It is not when the time is over, or the task is
  ///   cancelled.
  /// - Throws: `sessionsUnavailable` where the kernel refuses, as nothing would ever come; what
  ///   reading throws.
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

/// Notices that the session through which a vault was opened is over, until this object goes.
///
/// The kernel tells nobody when a key is revoked (keyctl(2) has `KEYCTL_WATCH_KEY`, which
/// distributions leave out), so it is asked four times a second: two system calls.
final class SessionWatch: Sendable {
  static let interval = Duration.milliseconds(250)

  private let task: Task<Void, Never>

  /// - Parameter tell: called once, when the session is over.
  init(
    _ place: SessionKeyLocation, _ key: SessionKey,
    tell: @escaping @Sendable (SessionEnd) async -> Void
  ) {
    task = Task.detached(priority: .high) {
      var key = key
      while (try? await Task.sleep(for: Self.interval, clock: .continuous)) != nil {
        switch place.look(at: key) {
        case .live(let renewed): key = renewed
        case .over(let end): return await tell(end)
        }
      }
    }
  }

  deinit {
    task.cancel()
  }
}

extension VaultOperations {
  func session(
    of id: VaultID, parameters: VaultParameters
  ) throws(VaultError) -> VaultSession? {
    guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters) else {
      return nil
    }
    do throws(KeyringError) {
      guard let found = try place.find() else { return nil }
      return VaultSession(id: id, deadline: found.key.deadline, now: place.now)
    } catch {
      throw .sessionsUnavailable(error)
    }
  }

  func endSession(of id: VaultID, parameters: VaultParameters) throws(VaultError) -> Bool {
    guard let place = try SessionKeyLocation(of: id, in: store, parameters: parameters) else {
      return false
    }
    do throws(KeyringError) {
      return try place.end()
    } catch {
      throw .sessionsUnavailable(error)
    }
  }
}

extension VaultOperations {
  /// Ends the session of a vault that is gone.
  ///
  /// Where the kernel refuses, there is none; and one that stays opens nothing any more.
  func endSessionOfGone(_ id: VaultID, parameters: VaultParameters) {
    _ = try? endSession(of: id, parameters: parameters)
  }
}

extension SessionKeyLocation {
  /// - Returns: nil for a store that no other process reaches.
  init?(
    of id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) throws(VaultError) {
    guard let identity = store.sessionIdentity(of: id) else { return nil }
    do throws(CryptoError) {
      try self.init(id, identity: identity, parameters: parameters)
    } catch {
      throw .crypto(error)
    }
  }
}
