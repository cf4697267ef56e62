internal import FileLayer
internal import VaultCrypto

extension Vault {
  /// Creates a vault and returns it unlocked; durable on return.
  ///
  /// - Parameters:
  ///   - id: names the vault in its store.
  ///   - credentials: the credentials that open the vault. The password must not be empty and must
  ///     satisfy the policy.
  ///   - policy: the vault's initial policy.
  /// - Throws: `alreadyExists`, `invalidArgument`, `writeFailed`; `passwordTooShort` and the other
  ///   rules of the policy; the errors of reading the store.
  public static func create(
    _ id: VaultID, in store: any VaultStore, credentials: borrowing Credentials,
    policy: VaultPolicy = VaultPolicy()
  ) async throws(VaultError) -> Vault {
    try await create(
      id, in: store, credentials: credentials, policy: policy, parameters: VaultParameters())
  }

  /// - Parameter policy: nil for the policy of the parameters.
  package static func create(
    _ id: VaultID, in store: any VaultStore, credentials: borrowing Credentials,
    policy: VaultPolicy? = nil, parameters: VaultParameters
  ) async throws(VaultError) -> Vault {
    let vault = Vault(id: id, store: store, parameters: parameters)
    try await vault.establish(credentials, policy: policy ?? parameters.newPolicy)
    return vault
  }

  /// Finds a vault and returns it locked.
  ///
  /// - Throws: `doesNotExist`; the errors of reading the store.
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

  /// Whether the store holds a vault with this id.
  ///
  /// - Throws: `unreadable`, `permissionsTooOpen`, `storeUnavailable`, `storeLocked`. Each error
  ///   means "unknown", never "no".
  public static func exists(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Bool {
    try await onBlockingThread("datavault.operations") { () throws(VaultError) in
      try store.read(id) != nil
    }
  }

  /// The vaults of a store, in ascending order.
  ///
  /// - Throws: the errors of ``exists(_:in:)``.
  public static func list(in store: any VaultStore) async throws(VaultError) -> [VaultID] {
    try await onBlockingThread("datavault.operations") { () throws(VaultError) in
      try store.ids()
    }
  }

  /// Deletes a vault and its contents without a password; durable on return.
  ///
  /// It also ends the vault's session.
  ///
  /// - Parameter force: also deletes a damaged vault, and a vault that holds a database's key.
  ///   Without the key, that database can never be opened again.
  /// - Throws: `doesNotExist`, `databaseStillExists`, `damaged`, `newerVersion`, `writeFailed`.
  public static func delete(
    _ id: VaultID, in store: any VaultStore, force: Bool = false
  ) async throws(VaultError) {
    try await delete(id, in: store, force: force, databaseExists: true)
  }

  /// As ``delete(_:in:force:)``, for a caller that has checked whether the database exists.
  package static func delete(
    _ id: VaultID, in store: any VaultStore, force: Bool, databaseExists: Bool,
    parameters: VaultParameters = VaultParameters()
  ) async throws(VaultError) {
    try await onBlockingThread("datavault.operations") { () throws(VaultError) in
      try store.delete(
        id, force: force, databaseMightExist: databaseExists, parameters: parameters)
    }
  }

  /// Renames a vault to a side name, from which it can be restored.
  ///
  /// It also ends the vault's session.
  ///
  /// - Returns: the side name.
  package static func retire(
    _ id: VaultID, in store: any VaultStore, parameters: VaultParameters = VaultParameters()
  ) async throws(VaultError) -> String {
    try await onBlockingThread("datavault.operations") { () throws(VaultError) in
      try store.retire(id, parameters: parameters)
    }
  }

  private func establish(
    _ credentials: borrowing Credentials, policy: VaultPolicy
  ) throws(VaultError) {
    try credentials.requireUsable()
    try policy.requireValid()
    try policy.check(credentials, for: .setting, of: id)
    try store.requireAbsence(of: id)
    let draft = try withCrypto { () throws(CryptoError) in
      try VaultDraft.new(
        id, credentials: credentials, policy: policy, parameters: parameters)
    }
    let lock = try store.lockForNewVault(id)
    defer { lock.release() }
    adopt(try write(draft))
  }
}

extension Credentials {
  /// - Throws: `invalidArgument` for a password that is not allowed.
  borrowing func requireUsable() throws(VaultError) {
    guard password.byteCount > 0 else {
      throw VaultError(
        .invalidArgument, "a password must not be empty",
        hint: "for a vault without protection, use the standard credentials")
    }
  }
}
