public import DataVault
internal import Dispatch
internal import Synchronization

/// Vaults in memory, for tests: the same bytes as in files, which end with the process.
public final class InMemoryVaultStore: VaultStore {
  private struct State {
    var vaults: [VaultID: [UInt8]] = [:]
    var retired: [String: [UInt8]] = [:]
    var locks: [VaultID: DispatchSemaphore] = [:]
    var attempts: [VaultID: [UInt8]] = [:]
    var attemptLocks: [VaultID: DispatchSemaphore] = [:]
    var failure: VaultError?
  }

  private let state = Mutex(State())

  /// An empty store.
  public init() {}

  /// The error with which every call fails, for a locked or vanished store; nil for none.
  public var failure: VaultError? {
    get { state.withLock { $0.failure } }
    set { state.withLock { $0.failure = newValue } }
  }

  /// The bytes of a vault, to inspect or to tamper with; nil if there is none.
  public subscript(id: VaultID) -> [UInt8]? {
    get { state.withLock { $0.vaults[id] } }
    set { state.withLock { $0.vaults[id] = newValue } }
  }

  /// The vaults in the store, in ascending order.
  public func ids() throws(VaultError) -> [VaultID] {
    try access { $0.vaults.keys.sorted() }
  }

  /// The vault's bytes.
  public func read(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try access { $0.vaults[id] }
  }

  /// Replaces or creates the vault.
  public func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    try access { $0.vaults[id] = bytes }
  }

  /// Removes the vault.
  public func remove(_ id: VaultID) throws(VaultError) {
    try access { state in
      state.vaults[id] = nil
      state.attempts[id] = nil
    }
  }

  /// Moves the vault to a side name, under which it is not listed.
  public func retire(_ id: VaultID) throws(VaultError) -> String {
    try access { state in
      let name = "\(id).retired-\(state.retired.count + 1)"
      state.retired[name] = state.vaults.removeValue(forKey: id)
      state.attempts[id] = nil
      return name
    }
  }

  /// The side names of retired vaults, in ascending order.
  public func retiredNames() throws(VaultError) -> [String] {
    try access { $0.retired.keys.sorted() }
  }

  /// Does nothing: memory needs no preparation.
  public func prepare() throws(VaultError) {}

  /// Waits for the exclusive right to change the vault.
  public func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try lock(id, among: \.locks)
  }

  /// Fails as every other operation does in this state.
  public func checkLock(of id: VaultID) throws(VaultError) {
    try access { _ in }
  }

  /// The record of attempts.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try access { $0.attempts[id] }
  }

  /// Replaces the record of attempts.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    try access { $0.attempts[id] = bytes }
  }

  /// Removes the record of attempts.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    try access { $0.attempts[id] = nil }
  }

  /// Throws ``failure``, as every other call does.
  public func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError) {
    try access { _ in }
  }

  /// Waits for the exclusive right to attempt to open the vault.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try lock(id, among: \.attemptLocks)
  }

  private func lock(
    _ id: VaultID, among locks: WritableKeyPath<State, [VaultID: DispatchSemaphore]>
  ) throws(VaultError) -> VaultStoreLock {
    let semaphore = try access { state in
      let semaphore = state[keyPath: locks][id] ?? DispatchSemaphore(value: 1)
      state[keyPath: locks][id] = semaphore
      return semaphore
    }
    guard semaphore.wait(timeout: .now() + .seconds(30)) == .success else {
      throw VaultError(.busy, "another caller has held a lock of vault '\(id)' for 30 seconds")
    }
    return VaultStoreLock { semaphore.signal() }
  }

  /// A text that says that the vault is in memory.
  public func location(of id: VaultID) -> String { "in memory: \(id)" }

  /// Always nil, because no other process can reach the store.
  public func sessionIdentity(of id: VaultID) -> String? { nil }

  private func access<R>(_ body: (inout State) -> R) throws(VaultError) -> R {
    try state.withLock { (state) throws(VaultError) in
      if let failure = state.failure { throw failure }
      return body(&state)
    }
  }
}
