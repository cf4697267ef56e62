import DataVault
import DataVaultTesting
import Synchronization

/// An in-memory store that runs a hook when a lock is requested.
final class HookedVaultStore: VaultStore {
  let base = InMemoryVaultStore()
  private let hook = Mutex<(@Sendable () throws(VaultError) -> Void)?>(nil)
  private let writes = Mutex(0)

  var writeCount: Int { writes.withLock { $0 } }

  /// Runs a hook once, at the next lock request and before the lock is taken; an error refuses the
  /// lock.
  func atNextLock(_ body: @escaping @Sendable () throws(VaultError) -> Void) {
    hook.withLock { $0 = body }
  }

  func ids() throws(VaultError) -> [VaultID] { try base.ids() }
  func read(_ id: VaultID) throws(VaultError) -> [UInt8]? { try base.read(id) }
  func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    try base.write(bytes, for: id)
    writes.withLock { $0 += 1 }
  }
  func remove(_ id: VaultID) throws(VaultError) { try base.remove(id) }
  func retire(_ id: VaultID) throws(VaultError) -> String { try base.retire(id) }
  func prepare() throws(VaultError) { try base.prepare() }
  func location(of id: VaultID) -> String { base.location(of: id) }

  func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    let body = hook.withLock { $0.take() }
    try body?()
    return try base.lock(id)
  }

  func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? { try base.readAttempts(id) }
  func writeAttempts(_ bytes: [UInt8], for id: VaultID, durably: Bool) throws(VaultError) {
    try base.writeAttempts(bytes, for: id, durably: durably)
  }
  func removeAttempts(_ id: VaultID) throws(VaultError) { try base.removeAttempts(id) }
  func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try base.lockAttempts(id)
  }
}
