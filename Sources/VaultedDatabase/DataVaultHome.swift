public import DataVault
package import FileLayer
public import SystemPackage

/// The directory with the vaults and the messaging database of one service.
///
/// `<home>/messaging.db` is the database. `<home>/vaults/<id>.vault` are the vaults, unless another
/// store keeps them. Files and directories are made at the first write, with modes 0600 and 0700.
public struct DataVaultHome: Sendable {
  /// The directory, an absolute path.
  public let path: FilePath

  /// The store that keeps the vaults.
  public let store: any VaultStore

  package let fileSystem: any FileSystem
  package let vaultParameters: VaultParameters

  /// The VFS below the sealed database; tests pass one that records.
  package let baseVFS: String

  /// A home whose vaults are files in it.
  public init(_ path: FilePath) {
    self.init(path, vaultParameters: VaultParameters())
  }

  /// A home whose vaults are in another store; the database and its lock files are in the
  /// directory.
  public init(_ path: FilePath, store: any VaultStore) {
    self.init(path, store: store, vaultParameters: VaultParameters())
  }

  /// - Parameter store: nil for files in the home.
  package init(
    _ path: FilePath, store: (any VaultStore)? = nil,
    fileSystem: any FileSystem = LinuxFileSystem(), vaultParameters: VaultParameters,
    baseVFS: String = "unix"
  ) {
    self.path = path
    self.store = store ?? FileVaultStore(home: path, fileSystem: fileSystem)
    self.fileSystem = fileSystem
    self.vaultParameters = vaultParameters
    self.baseVFS = baseVFS
  }

  /// The path of the messaging database: `<home>/messaging.db`.
  public var databasePath: FilePath { path.appending("messaging.db") }

  package var lockPath: FilePath { path.appending("messaging.lock") }
  package var creationPath: FilePath { path.appending("messaging.db.creating") }
  package var salvagePath: FilePath { path.appending("messaging.db.salvaged") }

  /// The greatest length of the home's path, in bytes.
  ///
  /// SQLite takes paths of 512 bytes, of which the names of its files beside the database need their part: see
  /// `MAX_PATHNAME` in os_unix.c.
  public static let maximumPathByteCount = 450

  /// Throws `invalidArgument` for a path in which SQLite could not name all its files.
  func requireShortPath() throws(VaultedDatabaseError) {
    let byteCount = path.string.utf8.count
    guard byteCount <= Self.maximumPathByteCount else {
      throw VaultedDatabaseError(
        .invalidArgument,
        "the path of the home has \(byteCount) bytes, and a queue's home at most \(Self.maximumPathByteCount)",
        hint: "use a shorter path")
    }
  }

  /// The live session of a vault; nil if there is none, or the kernel refuses sessions.
  package func liveSession(of id: VaultID) async throws(VaultError) -> VaultSession? {
    do throws(VaultError) {
      return try await VaultSession.find(id, in: store, parameters: vaultParameters)
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      return nil
    }
  }

  /// Makes the directory, if the vaults are in another store, which does not make it.
  package func makeDirectoryUnlessStoreDoes() throws(VaultError) {
    guard !(store is FileVaultStore) else { return }
    try FileVaultStore(home: path, fileSystem: fileSystem).prepare()
  }
}
