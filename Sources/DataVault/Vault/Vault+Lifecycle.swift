internal import FileLayer
internal import Synchronization
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
    let draft: VaultDraft
    do throws(CryptoError) {
      draft = try VaultDraft.new(
        id, credentials: credentials, policy: policy, parameters: parameters)
    } catch {
      throw .crypto(error)
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

/// The dependents of a vault: resources opened with its keys, which close before the keys are
/// wiped.
extension Vault {
  /// The time that a lock from outside waits for the dependents.
  ///
  /// A lock from outside promises to end within a second.
  static let outsideClosingTimeout = Duration.milliseconds(500)

  /// Calls `close` and waits for it whenever the vault is locked on request, while the result
  /// exists.
  ///
  /// While `close` runs, the vault refuses everything but ``storeAnchor(_:)``. A lock timeout does
  /// not call it.
  ///
  /// - Parameter close: can be called more than once.
  package nonisolated func addDependent(
    _ close: @escaping @Sendable () async -> Void
  ) -> VaultDependency {
    VaultDependency(dependents, close)
  }

  /// Refuses new work, waits up to `closingTimeout` for the dependents to close, then wipes the keys.
  func lock(because reason: VaultLockEvent.Reason, closingTimeout: Duration) async {
    refusesWork = true
    let closings = dependents.closings
    if !closings.isEmpty {
      _ = await completes(within: closingTimeout) {
        await withTaskGroup { group in
          for close in closings { group.addTask { await close() } }
        }
      }
    }
    close(because: reason)
  }
}

/// Registers a dependent with a vault for as long as this object exists.
package final class VaultDependency: Sendable {
  private let dependents: VaultDependents
  private let number: UInt64

  fileprivate init(_ dependents: VaultDependents, _ close: @escaping @Sendable () async -> Void) {
    self.dependents = dependents
    number = dependents.add(close)
  }

  deinit {
    dependents.remove(number)
  }
}

/// The dependents of one vault.
final class VaultDependents: Sendable {
  private struct State {
    var closings: [UInt64: @Sendable () async -> Void] = [:]
    var nextNumber: UInt64 = 0
  }

  private let state = Mutex(State())

  var closings: [@Sendable () async -> Void] { state.withLock { Array($0.closings.values) } }

  func add(_ close: @escaping @Sendable () async -> Void) -> UInt64 {
    state.withLock { state in
      state.nextNumber += 1
      state.closings[state.nextNumber] = close
      return state.nextNumber
    }
  }

  func remove(_ number: UInt64) {
    // Released outside the lock: releasing the closure can release another dependency, which takes
    // the lock.
    let closing = state.withLock { $0.closings.removeValue(forKey: number) }
    withExtendedLifetime(closing) {}
  }
}
