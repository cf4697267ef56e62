public import DataVault
package import FileLayer
public import GRDB
public import SealedSQLite
public import SealedVFS
public import SystemPackage
public import VaultCrypto

/// The encryption key of an application's own database, which a vault keeps under a name.
///
/// A vault can have any number of profiles; each is one of its items. Set a key before the first
/// opening, and open the database through the profile. To change the key, close the database in
/// every process first:
///
///     let profile = ConnectionProfile(vault: vault, name: "notes.key", database: path)
///     try await profile.setEncryptionKey(ConnectionProfile.generateEncryptionKey())
///     let pool = try await profile.openPool()
///
/// `docs/explanation/vaulted-database.md`, "Connection profiles", has the protocol.
public struct ConnectionProfile: Sendable {
  /// The path of the database, which need not exist yet.
  public let databasePath: FilePath

  private let coordinator: ProfileCoordinator

  /// Makes a profile; reads and writes nothing before it is used.
  ///
  /// - Parameters:
  ///   - vault: must be unlocked whenever the profile is used.
  ///   - name: of the vault's item, 1 to 255 bytes.
  ///   - path: of the database. The profile makes `<path>-lock` beside it, and never removes it.
  public init(vault: Vault, name: String, database path: FilePath) {
    self.init(
      vault: vault, name: name, database: path, fileSystem: LinuxFileSystem(), baseVFS: "unix")
  }

  package init(
    vault: Vault, name: String, database path: FilePath, fileSystem: any FileSystem,
    baseVFS: String
  ) {
    databasePath = path
    coordinator = ProfileCoordinator(
      vault: vault, name: name, path: path, fileSystem: fileSystem, baseVFS: baseVFS)
  }

  /// A new key: 32 random bytes.
  public static func generateEncryptionKey() -> SecretBytes {
    SecretBytes.random(byteCount: DatabaseKeys.keyByteCount)
  }

  /// Stores a key for the database; call it before any other operation.
  ///
  /// A database that exists must be under this key. Setting the profile's own key again changes
  /// nothing. Durable on return.
  ///
  /// - Parameter key: 32 bytes.
  /// - Throws: `keyExists` if the profile has another key: change it with
  ///   ``changeEncryptionKey(_:progress:)``; `databaseMismatch` if the database is not under this
  ///   key; `plainDatabase`, `newerVersion`; `invalidArgument`, `vaultLocked`, `vault`.
  public func setEncryptionKey(
    _ key: borrowing SecretBytes
  ) async throws(VaultedDatabaseError) {
    try await coordinator.set(key)
  }

  /// The key of the database, or the key under which it will be made.
  ///
  /// - Throws: `keyMissing` if none was set; `vaultLocked`, `vault`.
  public func encryptionKey() async throws(VaultedDatabaseError) -> SecretBytes {
    try await coordinator.key()
  }

  /// Seals the database under a new key and stores that key in the profile.
  ///
  /// All connections must be closed, in every process. On return all of it is durable, and the old
  /// key is gone from the vault. If the process is killed between any two steps, the next opening
  /// through the profile finishes what the vault had already stored.
  ///
  /// - Parameters:
  ///   - key: 32 bytes.
  ///   - progress: called with the pages sealed, after each mebibyte and at the end, on the
  ///     change's own thread.
  /// - Throws: `databaseMissing`, `keyMissing`; `busy` while another connection holds it;
  ///   `sameKey`; `readOnly`, `diskFull`, `damaged` if it cannot be copied; `invalidArgument`,
  ///   `vaultLocked`, `vault`. After an error profile and database are unchanged.
  public func changeEncryptionKey(
    _ key: borrowing SecretBytes, progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await coordinator.change(to: key, progress: progress)
  }

  /// Opens the database with the profile's key; it first finishes a change of key that a crash
  /// interrupted.
  ///
  /// Close the pool with `SealedDatabase.close`.
  ///
  /// - Parameters: as for `SealedDatabase.openPool`.
  /// - Throws: `keyMissing`; `databaseMissing` if `creation` is never; `databaseMismatch` if no key
  ///   of the profile opens the database; `plainDatabase`, `newerVersion`, `damaged`, `busy`,
  ///   `vaultLocked`, `vault`.
  public func openPool(
    configuration: Configuration = Configuration(), durability: Durability = .full,
    creation: SealedDatabase.Creation = .ifAbsent
  ) async throws(VaultedDatabaseError) -> DatabasePool {
    try await coordinator.openPool(
      configuration: configuration, durability: durability, creation: creation)
  }
}
