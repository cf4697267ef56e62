package import FileLayer
internal import Glibc
public import SystemPackage

/// Vaults as files: `<home>/vaults/<id>.vault`, mode 0600, in a directory of mode 0700.
///
/// Symbolic links and files that others may read or write are refused. Writes go to a temporary
/// file in the same directory, fsync, owner as before, rename, fsync of the directory. Changes are
/// serialised by flock(2) on `<id>.lock`, which stays. Attempts to open a vault are recorded in
/// `<id>.retry`, beside it.
public struct FileVaultStore: VaultStore {
  static let directoryPermissions: FilePermissions = .ownerReadWriteExecute
  static let filePermissions: FilePermissions = .ownerReadWrite

  let home: FilePath
  let directory: FilePath
  let fileSystem: any FileSystem
  private let patience: Duration
  let attemptPatience: Duration

  /// Vaults under a home directory, which need not exist before the first vault is made.
  public init(home: FilePath) {
    self.init(home: home, fileSystem: LinuxFileSystem())
  }

  /// - Parameters:
  ///   - patience: how long a lock is waited for.
  ///   - attemptPatience: how long the lock of attempts is.
  package init(
    home: FilePath, fileSystem: any FileSystem, patience: Duration = LockFile.patience,
    attemptPatience: Duration = LockFile.attemptPatience
  ) {
    self.home = home
    directory = home.appending("vaults")
    self.fileSystem = fileSystem
    self.patience = patience
    self.attemptPatience = attemptPatience
  }

  /// The file of a vault, whether it exists or not.
  func path(of id: VaultID) -> FilePath { directory.appending("\(id).vault") }

  /// The file's path.
  public func location(of id: VaultID) -> String { path(of: id).string }

  /// The vaults whose files are there, ascending; none when there is no directory.
  public func ids() throws(VaultError) -> [VaultID] {
    try checkDirectory()
    do throws(FileError) {
      let names = try fileSystem.entries(of: directory) ?? []
      return names.compactMap { name in
        name.hasSuffix(".vault") ? try? VaultID(String(name.dropLast(6))) : nil
      }.sorted()
    } catch {
      throw .unavailable(error)
    }
  }

  /// The file's bytes; nil only when it is absent.
  public func read(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    guard try checkedStatus(of: id) != nil else { return nil }
    do throws(FileError) {
      return try fileSystem.read(path(of: id), maximumByteCount: VaultFile.maximumByteCount)
    } catch {
      if error.errno == .fileTooLarge {
        throw VaultError(
          .damaged, "\(error.path) is larger than any vault", hint: "restore it from a backup",
          underlying: error)
      }
      throw .unreadable(error)
    }
  }

  /// Replaces the file, durably; its owner stays.
  public func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    let status = try checkedStatus(of: id)
    do throws(FileError) {
      let owner: FileOwner?
      if let status {
        owner = fileSystem.ownerToKeep(status)
      } else {
        owner = try fileSystem.ownerOfNewFile(in: directory)
      }
      try fileSystem.replace(
        path(of: id), with: bytes, permissions: Self.filePermissions, owner: owner)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Removes the file, what an interrupted write left of it, and the record of attempts, durably;
  /// the lock files stay.
  public func remove(_ id: VaultID) throws(VaultError) {
    do throws(FileError) {
      try fileSystem.remove(path(of: id).temporarySibling)
      try fileSystem.remove(path(of: id))
      try attemptFile(of: id).removeWithoutSynchronizing()
      try fileSystem.synchronizeDirectory(directory)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Renames the file to `<id>.vault.retired-<n>` and removes the record of attempts, durably.
  public func retire(_ id: VaultID) throws(VaultError) -> String {
    do throws(FileError) {
      let taken = Set(try fileSystem.entries(of: directory) ?? [])
      var number = 1
      while taken.contains("\(id).vault.retired-\(number)") { number += 1 }
      let target = directory.appending("\(id).vault.retired-\(number)")
      try fileSystem.rename(path(of: id), to: target)
      try attemptFile(of: id).removeWithoutSynchronizing()
      try fileSystem.synchronizeDirectory(directory)
      return target.string
    } catch {
      throw .writeFailed(error)
    }
  }

  /// The paths of the files that ``retire(_:)`` has renamed.
  public func retiredNames() throws(VaultError) -> [String] {
    do throws(FileError) {
      let entries = try fileSystem.entries(of: directory) ?? []
      return entries.filter { $0.contains(".vault.retired-") }.sorted()
        .map { directory.appending($0).string }
    } catch {
      throw .unreadable(error)
    }
  }

  /// Takes the vault's lock file; waits ten seconds for whoever holds it.
  public func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try LockFile(directory.appending("\(id).lock"), in: fileSystem)
      .lock(for: "changing vault '\(id)'", patience: patience)
  }
}
