internal import FileLayer
internal import Synchronization
internal import VaultCrypto

/// A place for secrets that opens with a password and a salt.
///
/// A vault is locked or unlocked. While it is unlocked, its keys and items are in memory (locked
/// pages, left out of core dumps); ``lock()`` wipes them, and so does the lock timeout of its
/// ``VaultPolicy``, also when nobody calls. Each change is durable when its call
/// returns, and takes into account what other objects and processes have changed.
///
/// Derivation and files block a thread of the vault's own, never the cooperative pool.
public actor Vault {
  /// The vault's name.
  public nonisolated let id: VaultID

  nonisolated let store: any VaultStore
  nonisolated let parameters: VaultParameters
  private nonisolated let executor = BlockingExecutor(label: "datavault.vault")
  nonisolated let expiry = ExpiryTask()
  private nonisolated let observers = LockObservers()
  nonisolated let dependents = VaultDependents()
  /// Set while the dependents close, before the vault is wiped.
  var refusesWork = false
  private var state: OpenVault?
  /// Set while the vault is unlocked.
  var timeout: LockTimeout?

  // Of the session through which the vault was opened: Sessions/Vault+Session.swift.
  var sessionWatch: SessionWatch?
  var sessionNumber = 0
  nonisolated let wasLockedFromOutside = Atomic<Bool>(false)

  /// The executor of this vault's own.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  init(id: VaultID, store: any VaultStore, parameters: VaultParameters) {
    self.id = id
    self.store = store
    self.parameters = parameters
  }

  /// Whether the vault is locked; a locked vault gives and takes nothing.
  public var isLocked: Bool {
    expireIfDue()
    return state == nil
  }

  /// Every locking of this vault from now on, with its reason.
  ///
  /// The last 8 events wait for a slow reader. The events end when nobody has the vault any more.
  public nonisolated var lockEvents: AsyncStream<VaultLockEvent> { observers.events() }

  /// Wipes keys and items from memory; a locked vault stays locked.
  ///
  /// It refuses everything at once, and waits up to 5 seconds for the engines that were started on
  /// it: they finish their commit, record their anchor and close their database.
  public func lock() async {
    await lock(because: .request, patience: parameters.lockPatience)
  }

  /// Opens the vault by its password, and lets its lock timeout count from now.
  ///
  /// An unlocked vault stays unlocked, and as it was when the credentials are wrong. Wrong attempts
  /// in a row back off, over all processes: from the third on none is taken for 1 s, then 2 s, up to
  /// 15 minutes. More of them than the policy's retry limit delete the vault. The standard
  /// credentials, which everybody knows, are no attempt.
  ///
  /// - Throws: `wrongPassword` for a wrong password or salt, `slotNotFound` for a vault without a
  ///   password; `tooManyAttempts`, `wiped`; `passwordExpired`, `passwordTooShort` and the other rules of
  ///   the policy, for the right password: ``changePassword(from:to:)`` takes it; `doesNotExist`,
  ///   `unreadable`, `permissionsTooOpen`, `storeUnavailable`, `storeLocked`; `damaged`,
  ///   `newerVersion`; `writeFailed` when a wrong attempt cannot be recorded.
  public func unlock(with credentials: borrowing Credentials) throws(VaultError) {
    try unlock(with: .password(credentials.copy()))
  }

  /// What the vault shows without being unlocked, read anew.
  ///
  /// - Throws: as ``unlock(with:)``, but for what concerns the credentials.
  public func status() throws(VaultError) -> VaultStatus {
    let file = try readFile()
    expireIfDue()
    let isAuthenticated =
      switch state {
      case .none: false
      case .some(let open): open.tail == file.tail
      }
    var status = VaultStatus(file, isAuthenticated: isAuthenticated)
    status.take(attemptRecord(), now: parameters.now())
    return status
  }

  // MARK: The state and its changes

  /// Lends the state as it is in the store now.
  ///
  /// - Throws: `locked`; `doesNotExist` when the vault has been deleted; what reading throws.
  func withContents<R: ~Copyable>(
    _ body: (borrowing OpenVault) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    try refresh()
    return try withState(body)
  }

  /// Changes the vault: reads, changes and writes while nobody else does.
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
    if key != keyBefore { endSession(unlessOpening: key) }
    return result
  }

  /// Writes the next state; the caller holds the store's lock.
  func write(_ draft: consuming VaultDraft) throws(VaultError) -> OpenVault {
    var draft = draft
    draft.contents.generation += 1
    let text = draft.contents.text()
    guard text.byteCount <= VaultContents.maximumTextByteCount else {
      throw VaultError(.vaultFull, "vault '\(id)' would grow beyond what a vault may hold")
    }
    let bytes: [UInt8]
    do throws(CryptoError) {
      bytes = try draft.seal(text, random: parameters.random)
    } catch {
      throw .crypto(error)
    }
    try store.write(bytes, for: id)
    return OpenVault(draft, tail: FileTail(of: bytes))
  }

  /// Makes a state the vault's own, as newly unlocked.
  func adopt(_ open: consuming OpenVault) {
    timeout = LockTimeout(open.contents.policy, start: parameters.sinceBoot())
    state = consume open
    scheduleExpiry()
  }

  /// Locks the vault, if it is not locked.
  func close(because reason: VaultLockEvent.Reason) {
    leaveSession()
    refusesWork = false
    guard state != nil else { return }
    state = nil
    timeout = nil
    expiry.set(nil)
    observers.tell(reason)
  }

  /// Takes over a state that has come from the one before.
  private func follow(_ open: consuming OpenVault) {
    let previous = timeout
    timeout?.follow(open.contents.policy, at: parameters.sinceBoot())
    state = consume open
    if timeout != previous { scheduleExpiry() }
  }

  private func withState<R: ~Copyable>(
    _ body: (borrowing OpenVault) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    switch state {
    case .none: throw .locked(id)
    case .some(let open): return try body(open)
    }
  }

  /// Takes in what others have written since.
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
      throw VaultError(
        .locked, "vault '\(id)' has new keys since it was unlocked", hint: "unlock it again")
    }
    follow(try open(file, contentKey: contentKey))
  }
}
