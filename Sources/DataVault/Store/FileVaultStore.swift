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

extension FileVaultStore {
  /// What lies at the vault's path; nil when nothing does.
  ///
  /// - Throws: for a symbolic link, and for what others may read or write.
  func checkedStatus(of id: VaultID) throws(VaultError) -> FileStatus? {
    try checkDirectory()
    let path = path(of: id)
    guard let status = try status(of: path) else { return nil }
    guard status.kind == .regular else {
      throw VaultError(
        .unreadable, "\(path) is not a regular file",
        hint: "a vault is never behind a symbolic link; move the file itself here")
    }
    guard !status.isOpenToOthers else {
      throw VaultError(
        .permissionsTooOpen, "other users may read or write \(path)", hint: "chmod 600 \(path)")
    }
    return status
  }

  /// Refuses a directory of vaults that others may read or write; a missing one is fine.
  package func checkDirectory() throws(VaultError) {
    guard let status = try status(of: directory) else { return }
    guard status.kind == .directory else {
      throw VaultError(.storeUnavailable, "\(directory) is not a directory")
    }
    guard !status.isOpenToOthers else {
      throw VaultError(
        .permissionsTooOpen, "other users may read or write \(directory)",
        hint: "chmod 700 \(directory)")
    }
  }

  private func status(of path: FilePath) throws(VaultError) -> FileStatus? {
    do throws(FileError) {
      return try fileSystem.status(of: path)
    } catch {
      throw .unreadable(error)
    }
  }

  /// Makes the home and its directory of vaults, durably; what is there is left as it is.
  public func prepare() throws(VaultError) {
    try checkDirectory()
    do throws(FileError) {
      var missing: [FilePath] = []
      var path = home
      while !path.isEmpty, try fileSystem.status(of: path) == nil {
        missing.append(path)
        path.removeLastComponent()
      }
      for path in missing.reversed() {
        try makeDirectory(path)
        try fileSystem.synchronizeDirectory(path.containingDirectory)
      }
      try makeDirectory(directory)
      // Also when it was there: whoever made it may have died before this.
      try fileSystem.synchronizeDirectory(home)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Makes a missing directory for the owner of the one above: root must not lock a daemon out.
  private func makeDirectory(_ path: FilePath) throws(FileError) {
    try fileSystem.createDirectory(
      path, permissions: Self.directoryPermissions,
      owner: try fileSystem.ownerOfNewFile(in: path.containingDirectory))
  }
}

extension FileVaultStore {
  func attemptFile(of id: VaultID) -> AttemptFile {
    AttemptFile(directory.appending("\(id).retry"), in: fileSystem)
  }

  /// The bytes of `<id>.retry`, or of an unfinished one that counts more failures; nil only when it is
  /// absent.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try attemptFile(of: id).read()
  }

  /// Replaces `<id>.retry`, which belongs to whom the vault belongs to.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    let owner: FileOwner?
    do throws(FileError) {
      if let vault = try fileSystem.status(of: path(of: id)) {
        owner = fileSystem.ownerToKeep(vault)
      } else {
        owner = try fileSystem.ownerOfNewFile(in: directory)
      }
    } catch {
      throw .writeFailed(error)
    }
    try attemptFile(of: id).write(bytes, owner: owner, durably: durably)
  }

  /// Removes `<id>.retry`, durably; its lock file stays.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    try attemptFile(of: id).remove()
  }

  /// Makes `.<id>.retry.probe` and removes it.
  public func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError) {
    try checkDirectory()
    try attemptFile(of: id).probe()
  }

  /// Takes `<id>.retry.lock`; waits half a minute for whoever is making an attempt.
  ///
  /// - Throws: `busy`, `fileSizeLimit`, `writeFailed`.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try checkDirectory()
    return try attemptFile(of: id).lock(of: id, patience: attemptPatience)
  }
}
