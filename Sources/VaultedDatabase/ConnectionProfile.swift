public import DataVault
package import FileLayer
public import GRDB
public import SealedSQLite
public import SealedVFS
public import SystemPackage
public import VaultCrypto

/// The encryption key of an application's own database, kept by a vault under a name.
///
/// Any number of profiles fit into a vault; each is one item of it. Set a key before the first opening,
/// open through the profile, and change the key whenever nobody has the database open:
///
///     let profile = ConnectionProfile(vault: vault, name: "notes.key", database: path)
///     try await profile.setEncryptionKey(ConnectionProfile.generateEncryptionKey())
///     let pool = try await profile.openPool()
///
/// `docs/explanation/vaulted-database.md`, "Connection profiles", has the protocol.
public struct ConnectionProfile: Sendable {
  /// The database that the key belongs to; need not exist yet.
  public let databasePath: FilePath

  private let keeper: ProfileCoordinator

  /// Names a profile; nothing is read or written before it is used.
  ///
  /// - Parameters:
  ///   - vault: unlocked, whenever the profile is used.
  ///   - name: of the vault's item, 1 to 255 bytes.
  ///   - path: of the database. Beside it `<path>-lock` is made, and never removed.
  public init(vault: Vault, name: String, database path: FilePath) {
    self.init(
      vault: vault, name: name, database: path, fileSystem: LinuxFileSystem(), baseVFS: "unix")
  }

  package init(
    vault: Vault, name: String, database path: FilePath, fileSystem: any FileSystem,
    baseVFS: String
  ) {
    databasePath = path
    keeper = ProfileCoordinator(
      vault: vault, name: name, path: path, fileSystem: fileSystem, baseVFS: baseVFS)
  }

  /// A new key: 32 random bytes.
  public static func generateEncryptionKey() -> SecretBytes {
    SecretBytes.random(byteCount: ProfileKeys.keyByteCount)
  }

  /// Keeps a key for the database; before any operation on it.
  ///
  /// A database that is there already must be under this key. Setting the key that the profile has
  /// changes nothing. Durable on return.
  ///
  /// - Parameter key: 32 bytes.
  /// - Throws: `keyExists` when the profile has another key: change it with
  ///   ``changeEncryptionKey(_:progress:)``; `databaseMismatch` when the database is not under this
  ///   key; `plainDatabase`, `newerVersion`; `invalidArgument`, `vaultLocked`, `vault`.
  public func setEncryptionKey(
    _ key: borrowing SecretBytes
  ) async throws(VaultedDatabaseError) {
    try await keeper.set(key)
  }

  /// The key that the database is under, or will be.
  ///
  /// - Throws: `keyMissing` when none was set; `vaultLocked`, `vault`.
  public func encryptionKey() async throws(VaultedDatabaseError) -> SecretBytes {
    try await keeper.key()
  }

  /// Seals the database under a new key and keeps that one in the profile.
  ///
  /// Everybody must have closed the database, in every process. On return all of it is durable, and
  /// the former key is gone from the vault. Killed between any two steps, the next opening through
  /// the profile finishes what the vault had already stored.
  ///
  /// - Parameters:
  ///   - key: 32 bytes.
  ///   - progress: told of the pages sealed, after each mebibyte and at the end; on a thread of the
  ///     change's own.
  /// - Throws: `databaseMissing`, `keyMissing`; `busy` while others hold the database; `sameKey`;
  ///   `readOnly`, `diskFull`, `damaged` when it cannot be copied; `invalidArgument`, `vaultLocked`,
  ///   `vault`. Profile and database are as they were then.
  public func changeEncryptionKey(
    _ key: borrowing SecretBytes, progress: @escaping @Sendable (PageProgress) -> Void = { _ in }
  ) async throws(VaultedDatabaseError) {
    try await keeper.change(to: key, progress: progress)
  }

  /// Opens the database with the profile's key, after a change of key that a crash interrupted has
  /// been finished.
  ///
  /// Close the pool by `SealedDatabase.close`.
  ///
  /// - Parameters: as for `SealedDatabase.openPool`.
  /// - Throws: `keyMissing`; `databaseMissing` where `creation` is never; `databaseMismatch` when no
  ///   key of the profile opens it; `plainDatabase`, `newerVersion`, `damaged`, `busy`,
  ///   `vaultLocked`, `vault`.
  public func openPool(
    configuration: Configuration = Configuration(), durability: Durability = .full,
    creation: SealedDatabase.Creation = .ifAbsent
  ) async throws(VaultedDatabaseError) -> DatabasePool {
    try await keeper.openPool(
      configuration: configuration, durability: durability, creation: creation)
  }
}
