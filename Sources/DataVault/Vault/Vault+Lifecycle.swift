internal import FileLayer
internal import Synchronization
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
  /// - Throws: when that cannot be told: `unreadable`, `permissionsTooOpen`, `storeUnavailable`,
  ///   `storeLocked`. None of them means "no".
  public static func exists(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Bool {
    try await VaultOperations(store).exists(id)
  }

  /// The vaults of a store, ascending.
  ///
  /// - Throws: when that cannot be told, as ``exists(_:in:)``.
  public static func list(in store: any VaultStore) async throws(VaultError) -> [VaultID] {
    try await VaultOperations(store).list()
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
    try await VaultOperations(store).delete(
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
    try await VaultOperations(store).retire(id, parameters: parameters)
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

/// What has been opened with a vault's keys is closed before they are wiped.
extension Vault {
  /// How long a locking from outside, which promises to be over within a second, waits for what has been
  /// opened from the vault.
  static let outsideLockPatience = Duration.milliseconds(500)

  /// Has `close` called, and waited for, whenever the vault is locked on request; until the result
  /// goes.
  ///
  /// While it runs the vault refuses everything but ``storeAnchor(_:)``. A lock timeout calls nobody.
  ///
  /// - Parameter close: may be called more than once.
  package nonisolated func addDependent(
    _ close: @escaping @Sendable () async -> Void
  ) -> VaultDependency {
    VaultDependency(dependents, close)
  }

  /// Refuses new work, lets the dependents close within `patience`, then wipes.
  func lock(because reason: VaultLockEvent.Reason, patience: Duration) async {
    refusesWork = true
    let closings = dependents.closings
    if !closings.isEmpty {
      _ = await finishes(within: patience) {
        await withTaskGroup { group in
          for close in closings { group.addTask { await close() } }
        }
      }
    }
    close(because: reason)
  }
}

/// Ties something that was opened with a vault's keys to that vault, as long as it is there.
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
    // Given back outside the lock: what it holds may end with it, and another dependency in that.
    let closing = state.withLock { $0.closings.removeValue(forKey: number) }
    withExtendedLifetime(closing) {}
  }
}
