internal import FileLayer
internal import Synchronization
internal import VaultCrypto

/// A place for secrets that opens with a password and a salt.
///
/// A vault is locked or unlocked. While it is unlocked, its keys and items are in memory (locked
/// pages, left out of core dumps); ``lock()`` wipes them. Each change is durable when its call
/// returns, and takes into account what other objects and processes have changed.
///
/// Derivation and files block a thread of the vault's own, never the cooperative pool.
public actor Vault {
  /// The vault's name.
  public nonisolated let id: VaultID

  nonisolated let store: any VaultStore
  nonisolated let parameters: VaultParameters
  private nonisolated let executor = BlockingExecutor(label: "datavault.vault")
  private var state: OpenVault?

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
  public var isLocked: Bool { state == nil }

  /// Wipes keys and items from memory; a locked vault stays locked.
  public func lock() {
    state = nil
    leaveSession()
  }

  /// Opens the vault by its password.
  ///
  /// An unlocked vault stays unlocked, and as it was when the credentials are wrong.
  ///
  /// - Throws: `wrongPassword` for a wrong password or salt, `slotNotFound` for a vault without a
  ///   password; `doesNotExist`, `unreadable`, `loosePermissions`, `storeUnavailable`,
  ///   `storeLocked`; `damaged`, `newerVersion`.
  public func unlock(with credentials: borrowing Credentials) throws(VaultError) {
    try unlock(with: .password(credentials.copy()))
  }

  /// What the vault shows without being unlocked, read anew.
  ///
  /// - Throws: as ``unlock(with:)``, but for `wrongPassword`.
  public func status() throws(VaultError) -> VaultStatus {
    let file = try readFile()
    let isAuthenticated =
      switch state {
      case .none: false
      case .some(let open): open.tail == file.tail
      }
    return VaultStatus(file, isAuthenticated: isAuthenticated)
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
    let result = try body(&draft)
    state = try write(draft)
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

  /// Makes a state the vault's own.
  func adopt(_ open: consuming OpenVault) {
    state = consume open
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
    guard !isLocked else { throw .locked(id) }
    guard let bytes = try store.read(id) else {
      state = nil
      throw .doesNotExist(id, in: store)
    }
    guard try withState({ $0.tail != FileTail(of: bytes) }) else { return }
    let file = try parse(bytes)
    guard let contentKey = try withState({ $0.contentKey(fitting: file.key) }) else {
      state = nil
      throw VaultError(
        .locked, "vault '\(id)' has new keys since it was unlocked", hint: "unlock it again")
    }
    state = try open(file, contentKey: contentKey)
  }
}
