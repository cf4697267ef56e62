public import DataVault
package import FileLayer
public import SystemPackage

/// The directory in which the vaults and the messaging database of one service lie.
///
/// `<home>/vaults/<id>.vault` are the vaults unless another store keeps them, `<home>/messaging.db` is the database. Nothing is made
/// before something is written; directories are 0700 and files 0600 then.
public struct DataVaultHome: Sendable {
  /// The directory, an absolute path.
  public let path: FilePath

  /// Where the vaults are kept.
  public let store: any VaultStore

  package let fileSystem: any FileSystem
  package let vaultParameters: VaultParameters

  /// The VFS beneath the sealed database; tests name one that records.
  package let baseVFS: String

  /// A home whose vaults are files in it.
  public init(_ path: FilePath) {
    self.init(path, fileSystem: LinuxFileSystem(), vaultParameters: VaultParameters())
  }

  /// A home whose vaults are kept elsewhere; the database, its lock and the like are in it.
  public init(_ path: FilePath, store: any VaultStore) {
    self.init(
      path, store: store, fileSystem: LinuxFileSystem(), vaultParameters: VaultParameters())
  }

  package init(
    _ path: FilePath, fileSystem: any FileSystem, vaultParameters: VaultParameters,
    baseVFS: String = "unix"
  ) {
    self.init(
      path, store: FileVaultStore(home: path, fileSystem: fileSystem), fileSystem: fileSystem,
      vaultParameters: vaultParameters, baseVFS: baseVFS)
  }

  package init(
    _ path: FilePath, store: any VaultStore, fileSystem: any FileSystem = LinuxFileSystem(),
    vaultParameters: VaultParameters, baseVFS: String = "unix"
  ) {
    self.path = path
    self.store = store
    self.fileSystem = fileSystem
    self.vaultParameters = vaultParameters
    self.baseVFS = baseVFS
  }

  /// Where the messages are: `<home>/messaging.db`.
  public var databasePath: FilePath { path.appending("messaging.db") }

  package var lockPath: FilePath { path.appending("messaging.lock") }
  package var creationPath: FilePath { path.appending("messaging.db.creating") }
  package var salvagePath: FilePath { path.appending("messaging.db.salvaged") }

  /// Makes the directory for a vault that is kept elsewhere, and can outlive it.
  func makeWhereTheStoreDoesNot() throws(VaultError) {
    guard !(store is FileVaultStore) else { return }
    try FileVaultStore(home: path, fileSystem: fileSystem).prepare()
  }
}
