internal import FileLayer
internal import Synchronization
internal import VaultCrypto

/// A store of secrets that opens with a password and an optional salt.
///
/// A vault is locked or unlocked. While it is unlocked, its keys and items are in locked memory
/// pages that core dumps omit. ``lock()`` wipes them. The lock timeout of the ``VaultPolicy`` wipes
/// them without a call. Each change is durable when its call returns, and includes the changes of
/// other objects and processes.
///
/// Key derivation and file access block a thread of the vault's own, never the cooperative pool.
public actor Vault {
  /// The vault's name.
  public nonisolated let id: VaultID

  nonisolated let store: any VaultStore
  nonisolated let parameters: VaultParameters
  private nonisolated let executor = BlockingExecutor(label: "datavault.vault")
  nonisolated let expiry = ExpiryTask()
  private nonisolated let observers = LockObservers()
  nonisolated let dependents = Registrations<@Sendable () async -> Void>()
  /// True while the dependents close, before the vault is wiped.
  var refusesWork = false
  private var state: OpenVault?
  /// The password slot when the vault was opened, with the changes of this object.
  private(set) var knownPasswordSlot: KeySlot?
  /// The slot that a secret has opened last, such as `recovery:paper`.
  package internal(set) var lastOpenedSlot: String?
  /// Set while the vault is unlocked.
  var timeout: LockTimeout?

  // The state of the session that opened the vault: see Sessions/Vault+Session.swift.
  var sessionWatch: SessionWatch?
  var sessionNumber = 0
  nonisolated let wasLockedFromOutside = Atomic<Bool>(false)
  nonisolated let isInSession = Atomic<Bool>(false)

  /// The vault's own executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  init(id: VaultID, store: any VaultStore, parameters: VaultParameters) {
    self.id = id
    self.store = store
    self.parameters = parameters
  }

  /// Whether the vault is locked; a locked vault neither returns nor accepts data.
  public var isLocked: Bool {
    expireIfDue()
    return state == nil
  }

  /// The lock events of this vault from now on, with their reasons.
  ///
  /// The stream buffers the last 8 events for a slow reader. It ends when the vault object is
  /// released.
  public nonisolated var lockEvents: AsyncStream<VaultLockEvent> { observers.events() }

  /// Wipes keys and items from memory; a locked vault stays locked.
  ///
  /// The vault refuses all new operations immediately. It then waits up to 5 seconds for the
  /// engines that use it: they finish their commit, record their anchor and close their database.
  public func lock() async {
    await lock(because: .request, closingTimeout: parameters.closingTimeout)
  }

  /// Opens the vault with its password and restarts its lock timeout.
  ///
  /// If the credentials are wrong, an unlocked vault stays unlocked and unchanged. Consecutive
  /// failed attempts cause a delay, counted over all processes: from the third on the vault accepts
  /// none for 1 s, then 2 s, up to 15 minutes. More failed attempts than the policy's retry limit
  /// delete the vault. A try with the standard credentials, which are public, is not an attempt.
  ///
  /// - Throws: `wrongPassword` for a wrong password or salt, `slotNotFound` for a vault without a
  ///   password; `tooManyAttempts`, `deletedByRetryLimit`; `passwordExpired`, `passwordTooShort` and the other
  ///   rules of the policy, for the right password: ``changePassword(from:to:)`` accepts it;
  ///   `doesNotExist`, `unreadable`, `permissionsTooOpen`, `storeUnavailable`, `storeLocked`;
  ///   `damaged`, `newerVersion`; `writeFailed` when a failed attempt cannot be recorded.
  public func unlock(with credentials: borrowing Credentials) throws(VaultError) {
    try unlock(with: .password(credentials.copy()))
  }

  /// The vault's public information, read from the store; needs no password.
  ///
  /// - Throws: the errors of ``unlock(with:)``, except those about the credentials.
  public func status() throws(VaultError) -> VaultStatus {
    let file = try readFile()
    expireIfDue()
    let isAuthenticated = (try? withState { $0.tail == file.tail }) ?? false
    return VaultStatus(
      file, isAuthenticated: isAuthenticated, attempts: attemptRecord(), now: parameters.now())
  }

  // MARK: The state and its changes

  /// Lends the current state, refreshed from the store.
  ///
  /// - Throws: `locked`; `doesNotExist` when the vault has been deleted; the errors of reading.
  func withContents<R: ~Copyable>(
    _ body: (borrowing OpenVault) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    try refresh()
    return try withState(body)
  }

  /// Changes the vault: reads, changes and writes it under the store's lock.
  ///
  /// - Returns: what `body` returns, once the change is durable.
  func change<R: ~Copyable>(
    _ body: (inout VaultDraft) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    try refresh()
    let lock = try store.lock(id)
    defer { lock.release() }
    try refresh()
    var draft = try withState { $0.draft() }
    let keyBefore = draft.key
    let result = try body(&draft)
    let key = draft.key
    follow(try write(draft))
    if keyBefore.passwordSlot == knownPasswordSlot { knownPasswordSlot = key.passwordSlot }
    if key != keyBefore { endSession(unlessOpening: key) }
    return result
  }

  /// Writes the next state; the caller holds the store's lock.
  func write(_ draft: consuming VaultDraft) throws(VaultError) -> OpenVault {
    var draft = draft
    draft.contents.countWrite()
    let text = draft.contents.text()
    guard text.byteCount <= draft.maximumTextByteCount else {
      throw VaultError(
        .vaultFull, "vault '\(id)' would exceed the maximum size of a vault",
        hint: "remove an item first")
    }
    let bytes = try withCrypto { () throws(CryptoError) in
      try draft.seal(text, random: parameters.random)
    }
    try store.write(bytes, for: id)
    return OpenVault(draft, tail: FileTail(of: bytes))
  }

  /// Replaces the vault's state and restarts the lock timeout, as after an unlock.
  func adopt(_ opened: consuming OpenVault) {
    timeout = LockTimeout(opened.contents.policy, start: parameters.sinceBoot())
    knownPasswordSlot = opened.key.passwordSlot
    state = consume opened
    scheduleExpiry()
  }

  /// Locks the vault, if it is unlocked.
  ///
  /// A vault that times out, by its own rules or with its session, still follows its sessions for its dependents, which
  /// continue.
  func close(because reason: VaultLockEvent.Reason) {
    let continues = [.timeout, .session].contains(reason) && !dependents.values.isEmpty
    if !continues { leaveSession() }
    refusesWork = false
    guard state != nil else { return }
    state = nil
    timeout = nil
    expiry.set(nil)
    observers.notify(reason)
  }

  /// Replaces the vault's state by its successor; the lock timeout continues.
  private func follow(_ opened: consuming OpenVault) {
    let previous = timeout
    timeout?.follow(opened.contents.policy, at: parameters.sinceBoot())
    state = consume opened
    if timeout != previous { scheduleExpiry() }
  }

  private func withState<R: ~Copyable>(
    _ body: (borrowing OpenVault) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    switch state {
    case .none: throw .locked(id)
    case .some(let opened): return try body(opened)
    }
  }

  /// Reads the changes that others have written since the last read.
  private func refresh() throws(VaultError) {
    guard !isLocked, !refusesWork else { throw .locked(id) }
    guard let bytes = try store.read(id) else {
      close(because: .deleted)
      throw .doesNotExist(id, in: store)
    }
    guard try withState({ $0.tail != FileTail(of: bytes) }) else { return }
    let file = try parse(bytes)
    guard let contentKey = try withState({ $0.contentKey(fitting: file.key) }) else {
      close(because: .newKeys)
      throw .newKeys(id)
    }
    follow(try open(file, contentKey: contentKey))
  }
}
