internal import Synchronization
public import SystemPackage

/// A store of vaults: files, a desktop's keyring, memory.
///
/// Every store keeps the same bytes. Its methods block, and a vault calls them on its own executor.
/// A store must distinguish four cases: no vault (a result, never an error), unreadable
/// (`unreadable`, `permissionsTooOpen`), locked (`storeLocked`) and unreachable
/// (`storeUnavailable`).
public protocol VaultStore: Sendable {
  /// The vaults in the store, in ascending order.
  func ids() throws(VaultError) -> [VaultID]

  /// The vault's bytes; nil only if the store was read and holds no such vault.
  func read(_ id: VaultID) throws(VaultError) -> [UInt8]?

  /// Replaces the vault's bytes as a whole, or creates the vault; durable on return.
  ///
  /// After a crash the store holds either the old or the new bytes. The caller holds the lock.
  func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError)

  /// Removes the vault, then the record of attempts; durable on return.
  ///
  /// The caller holds the lock.
  func remove(_ id: VaultID) throws(VaultError)

  /// Renames the vault to a side name, under which it is not listed, and removes the record of
  /// attempts; durable on return.
  ///
  /// The caller holds the lock.
  /// - Returns: the side name, for people.
  func retire(_ id: VaultID) throws(VaultError) -> String

  /// The side names of retired vaults, in ascending order.
  ///
  /// Default: none.
  func retiredNames() throws(VaultError) -> [String]

  /// Creates what the store needs before its first vault, such as a directory.
  func prepare() throws(VaultError)

  /// Waits for the exclusive right to change the vault, among all objects and processes.
  ///
  /// - Throws: `busy` if another caller holds the lock for longer than the store waits.
  func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock

  /// Checks that ``lock(_:)`` can take its lock; does not wait and creates nothing.
  ///
  /// Default: it can.
  ///
  /// - Throws: what ``lock(_:)`` throws, except `busy` and the errors of creating a missing lock file.
  func checkLock(of id: VaultID) throws(VaultError)

  /// Checks that no foreign directory prevents ``write(_:for:)``; changes nothing.
  ///
  /// Default: none does.
  ///
  /// - Throws: what ``write(_:for:)`` throws because of it.
  func checkWriting(of id: VaultID) throws(VaultError)

  /// The vault's location, for messages.
  func location(of id: VaultID) -> String

  /// A name that identifies the vault in every process of this user, for sessions; nil if no other
  /// process can reach the vault.
  ///
  /// Default: its location.
  func sessionIdentity(of id: VaultID) -> String?

  /// The directory for the sockets of the processes that use these vaults, in an existing directory of their owner;
  /// nil for none.
  ///
  /// `docs/reference/session-socket.md` specifies it. Default: none.
  var processDirectory: FilePath? { get }

  // The record of attempts to open the vault has at most 4096 bytes. By default a store keeps none,
  // so that it has no back-off and no retry limit.

  /// The record of attempts; nil when there is none.
  func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]?

  /// Replaces the record of attempts as a whole. The caller holds the lock of attempts.
  ///
  /// - Parameter durably: whether the record must be durable on return. Otherwise a power cut can
  ///   leave the old record, the new one or none.
  func writeAttempts(_ bytes: [UInt8], for id: VaultID, durably: Bool) throws(VaultError)

  /// Removes the record of attempts, if there is one; durable on return.
  func removeAttempts(_ id: VaultID) throws(VaultError)

  /// Waits for the exclusive right to attempt to open the vault, among all objects and processes.
  ///
  /// This lock is separate from the one of ``lock(_:)``. A caller can take that one while it holds
  /// this one, but not in the reverse order.
  ///
  /// - Throws: `busy` if another caller holds the lock for longer than the store waits; the vault
  ///   then refuses the attempt. After any other error the vault makes the attempt, and only its
  ///   failure is reported as an error of recording.
  func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock

  /// Checks whether a failed attempt could be recorded now, and leaves nothing behind.
  ///
  /// Default: it can.
  ///
  /// - Throws: the errors of ``lockAttempts(_:)`` and ``writeAttempts(_:for:durably:)``, except
  ///   `busy`.
  func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError)
}

extension VaultStore {
  /// The default: no names.
  public func retiredNames() throws(VaultError) -> [String] { [] }

  /// The default: no error.
  public func checkLock(of id: VaultID) throws(VaultError) {}

  /// The default: no error.
  public func checkWriting(of id: VaultID) throws(VaultError) {}

  /// The default: the vault's location.
  public func sessionIdentity(of id: VaultID) -> String? { location(of: id) }

  /// The default: none.
  public var processDirectory: FilePath? { nil }

  /// The default: no record.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? { nil }

  /// The default: does nothing.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {}

  /// The default: does nothing.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {}

  /// The default: does nothing.
  public func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError) {}

  /// The default: a lock without effect.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    VaultStoreLock {}
  }
}

/// The exclusive right to change a vault, until ``release()`` or until the object is released.
public final class VaultStoreLock: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>
  private let reserve: DescriptorReserve?

  /// - Parameter body: releases the lock; called once.
  public convenience init(release body: @escaping @Sendable () -> Void) {
    self.init(reserve: nil, release: body)
  }

  init(reserve: DescriptorReserve?, release body: @escaping @Sendable () -> Void) {
    self.body = Mutex(body)
    self.reserve = reserve
  }

  /// Gives back the descriptors that recording an attempt takes.
  func returnReserve() {
    reserve?.close()
  }

  /// Releases the lock; a second call does nothing.
  public func release() {
    returnReserve()
    body.withLock { $0.take() }?()
  }

  deinit {
    release()
  }
}
