internal import VaultCrypto

extension Vault {
  /// Makes a vault; it comes back unlocked.
  ///
  /// - Parameters:
  ///   - id: names the vault in its store.
  ///   - credentials: what will open it; the password must not be empty, and keep the policy.
  ///   - policy: what the vault demands from the start.
  /// - Throws: `alreadyExists`, `invalidArgument`, `writeFailed`; `passwordTooShort` and the other
  ///   rules of the policy; what reading a store throws.
  public static func create(
    _ id: VaultID, in store: any VaultStore, credentials: borrowing Credentials,
    policy: VaultPolicy = VaultPolicy()
  ) async throws(VaultError) -> Vault {
    try await create(
      id, in: store, credentials: credentials, policy: policy, parameters: VaultParameters())
  }

  /// - Parameter policy: nil for that of the parameters.
  package static func create(
    _ id: VaultID, in store: any VaultStore, credentials: borrowing Credentials,
    policy: VaultPolicy? = nil, parameters: VaultParameters
  ) async throws(VaultError) -> Vault {
    let vault = Vault(id: id, store: store, parameters: parameters)
    try await vault.establish(credentials, policy: policy ?? parameters.newPolicy)
    return vault
  }

  /// Finds a vault; it comes back locked.
  ///
  /// - Throws: `doesNotExist`; what reading a store throws.
  public static func get(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Vault {
    try await get(id, in: store, parameters: VaultParameters())
  }

  package static func get(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters
  ) async throws(VaultError) -> Vault {
    guard try await exists(id, in: store) else { throw .doesNotExist(id, in: store) }
    return Vault(id: id, store: store, parameters: parameters)
  }

  /// Whether there is such a vault.
  ///
  /// - Throws: when that cannot be told: `unreadable`, `loosePermissions`, `storeUnavailable`,
  ///   `storeLocked`. None of them means "no".
  public static func exists(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Bool {
    try await VaultKeeper(store).exists(id)
  }

  /// The vaults of a store, ascending.
  ///
  /// - Throws: when that cannot be told, as ``exists(_:in:)``.
  public static func list(in store: any VaultStore) async throws(VaultError) -> [VaultID] {
    try await VaultKeeper(store).list()
  }

  /// Deletes a vault and all it holds; no password is needed.
  ///
  /// A session of the vault ends.
  ///
  /// - Parameter force: also deletes a vault that keeps a database's key, without which that
  ///   database opens never again, and one that is damaged.
  /// - Throws: `doesNotExist`, `databaseStillExists`, `damaged`, `newerVersion`, `writeFailed`.
  public static func delete(
    _ id: VaultID, in store: any VaultStore, force: Bool = false
  ) async throws(VaultError) {
    try await delete(id, in: store, force: force, databaseExists: true)
  }

  /// As ``delete(_:in:force:)``, by someone who has looked for the database.
  package static func delete(
    _ id: VaultID, in store: any VaultStore, force: Bool, databaseExists: Bool,
    parameters: VaultParameters = VaultParameters()
  ) async throws(VaultError) {
    try await VaultKeeper(store).delete(
      id, force: force, databaseMayExist: databaseExists, parameters: parameters)
  }

  /// Moves a vault to a side name, for whoever may want it back.
  ///
  /// A session of the vault ends.
  ///
  /// - Returns: the side name.
  package static func retire(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters = VaultParameters()
  ) async throws(VaultError) -> String {
    try await VaultKeeper(store).retire(id, parameters: parameters)
  }

  private func establish(
    _ credentials: borrowing Credentials, policy: VaultPolicy
  ) throws(VaultError) {
    try credentials.requireUsable()
    try policy.requireValid()
    try policy.check(credentials, for: .setting, of: id)
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
    let draft: VaultDraft
    do throws(CryptoError) {
      draft = try VaultDraft.new(
        id, credentials: credentials, policy: policy, parameters: parameters)
    } catch {
      throw .crypto(error)
    }
    try store.prepare()
    let lock = try store.lock(id)
    defer { lock.release() }
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
    // Attempts on an earlier vault of this name, of which a deletion was interrupted.
    try store.removeAttempts(id)
    adopt(try write(draft))
  }
}

extension Credentials {
  /// - Throws: `invalidArgument` for what may not be set as a password.
  borrowing func requireUsable() throws(VaultError) {
    guard password.byteCount > 0 else {
      throw VaultError(
        .invalidArgument, "a password must not be empty",
        hint: "for no security on purpose there are the standard credentials")
    }
  }
}
