internal import Synchronization

/// A place where vaults are kept: files, a desktop's keyring, memory.
///
/// Every store keeps the same bytes. Calls block; a vault makes them on an executor of its own. A
/// store must tell apart: absent (a result, never an error), unreadable (`unreadable`,
/// `permissionsTooOpen`), locked (`storeLocked`) and not reachable (`storeUnavailable`).
public protocol VaultStore: Sendable {
  /// The vaults that are there, ascending.
  func ids() throws(VaultError) -> [VaultID]

  /// The vault's bytes; nil only when the store could be read and holds none.
  func read(_ id: VaultID) throws(VaultError) -> [UInt8]?

  /// Replaces the vault's bytes as a whole, or makes it; durable on return. After a crash either
  /// the old or the new bytes are there. The caller holds the lock.
  func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError)

  /// Removes the vault, and then the record of attempts; durable on return. The caller holds the
  /// lock.
  func remove(_ id: VaultID) throws(VaultError)

  /// Moves the vault to a side name under which it is no vault any more, and removes the record of
  /// attempts; durable on return. The caller holds the lock.
  ///
  /// - Returns: the side name, for people.
  func retire(_ id: VaultID) throws(VaultError) -> String

  /// The side names of retired vaults, ascending.
  ///
  /// Default: none.
  func retiredNames() throws(VaultError) -> [String]

  /// Makes what the store itself needs before its first vault.
  func prepare() throws(VaultError)

  /// Waits until this caller alone may change the vault, among all objects and processes.
  ///
  /// - Throws: `busy` when somebody else holds the lock for longer than the store waits.
  func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock

  /// Where the vault is, for messages.
  func location(of id: VaultID) -> String

  /// What names the vault alike in every process of this user, for sessions; nil when no other
  /// process can reach it.
  ///
  /// Default: its location.
  func sessionIdentity(of id: VaultID) -> String?

  // A record of attempts to open the vault, at most 4096 bytes. By default none is kept: there is
  // no back-off and no retry limit then.

  /// The record of attempts; nil when there is none.
  func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]?

  /// Replaces the record of attempts as a whole. The caller holds the lock of attempts.
  ///
  /// - Parameter durably: whether it must be durable on return. Otherwise a power cut may leave the
  ///   old record, the new one or none.
  func writeAttempts(_ bytes: [UInt8], for id: VaultID, durably: Bool) throws(VaultError)

  /// Removes the record of attempts, if there is one; durable on return.
  func removeAttempts(_ id: VaultID) throws(VaultError)

  /// Waits until this caller alone may attempt to open the vault, among all objects and processes.
  ///
  /// It is not the lock of ``lock(_:)``, which may be taken while this one is held, never the other
  /// way round.
  ///
  /// - Throws: `busy` when others hold the lock for longer than the store waits: no attempt is made
  ///   then. After any other error it is, and only its failure is not answered.
  func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock

  /// Tries whether a wrong attempt could be recorded now; nothing stays of it.
  ///
  /// Default: it can.
  ///
  /// - Throws: what ``lockAttempts(_:)`` and ``writeAttempts(_:for:durably:)`` would, but for `busy`.
  func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError)
}

extension VaultStore {
  /// None.
  public func retiredNames() throws(VaultError) -> [String] { [] }

  /// The vault's location.
  public func sessionIdentity(of id: VaultID) -> String? { location(of: id) }

  /// No record.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? { nil }

  /// Keeps nothing.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {}

  /// Has nothing to remove.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {}

  /// Finds nothing.
  public func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError) {}

  /// A lock that keeps nobody out.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    VaultStoreLock {}
  }
}

/// The exclusive right to change a vault, until ``release()`` or until the last reference goes.
public final class VaultStoreLock: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>

  /// - Parameter body: gives the lock back; called once.
  public init(release body: @escaping @Sendable () -> Void) {
    self.body = Mutex(body)
  }

  /// Gives the lock back; a second call does nothing.
  public func release() {
    body.withLock { $0.take() }?()
  }

  deinit {
    release()
  }
}
