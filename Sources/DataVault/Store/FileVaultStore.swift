package import FileLayer
internal import Glibc
public import SystemPackage

/// Vaults as files: `<home>/vaults/<id>.vault`, mode 0600, in a directory of mode 0700.
///
/// It refuses symbolic links and files that other users can read or write. A write creates a
/// temporary file in the same directory, calls fsync, keeps the owner, renames the file and calls
/// fsync on the directory. Changes are serialised by flock(2) on `<id>.lock`, which is permanent.
/// Attempts to open a vault are recorded in `<id>.retry`, beside the vault.
public struct FileVaultStore: VaultStore {
  static let directoryPermissions: FilePermissions = .ownerReadWriteExecute
  static let filePermissions: FilePermissions = .ownerReadWrite

  let home: FilePath
  let directory: FilePath
  let fileSystem: any FileSystem
  private let busyTimeout: Duration
  let attemptBusyTimeout: Duration

  /// Vaults under a home directory, which is created with the first vault.
  public init(home: FilePath) {
    self.init(home: home, fileSystem: LinuxFileSystem())
  }

  /// - Parameters:
  ///   - busyTimeout: the time to wait for a vault's lock.
  ///   - attemptBusyTimeout: the time to wait for the lock of attempts.
  package init(
    home: FilePath, fileSystem: any FileSystem, busyTimeout: Duration = LockFile.busyTimeout,
    attemptBusyTimeout: Duration = LockFile.attemptBusyTimeout
  ) {
    self.home = home
    directory = home.appending("vaults")
    self.fileSystem = fileSystem
    self.busyTimeout = busyTimeout
    self.attemptBusyTimeout = attemptBusyTimeout
  }

  /// The path of a vault's file, whether it exists or not.
  func path(of id: VaultID) -> FilePath { directory.appending("\(id).vault") }

  /// The file's path.
  public func location(of id: VaultID) -> String { path(of: id).string }

  /// The vaults in the directory, in ascending order; none if the directory does not exist.
  public func ids() throws(VaultError) -> [VaultID] {
    try checkDirectory()
    let names = try converting(VaultError.unavailable) { () throws(FileError) in
      try fileSystem.entries(of: directory) ?? []
    }
    return names.compactMap { name in
      name.hasSuffix(".vault") ? try? VaultID(String(name.dropLast(6))) : nil
    }.sorted()
  }

  /// The file's bytes; nil only if the file does not exist.
  public func read(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    guard try checkedStatus(of: id) != nil else { return nil }
    do throws(FileError) {
      return try fileSystem.read(path(of: id), maximumByteCount: VaultFile.maximumByteCount)
    } catch {
      if error.errno == .fileTooLarge {
        throw VaultError(
          .damaged,
          "\(error.path) is larger than the maximum of \(VaultFile.maximumByteCount) bytes",
          hint: "restore it from a backup",
          underlying: error)
      }
      throw .unreadable(error)
    }
  }

  /// Replaces the file durably and keeps its owner.
  public func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    let status = try checkedStatus(of: id)
    try converting(VaultError.writeFailed) { () throws(FileError) in
      try fileSystem.replace(
        path(of: id), with: bytes, permissions: Self.filePermissions,
        owner: try ownerOfFiles(of: status))
    }
  }

  /// The owner of what belongs to a vault whose file has this status.
  private func ownerOfFiles(of vault: FileStatus?) throws(FileError) -> FileOwner? {
    guard let vault else { return try fileSystem.ownerOfNewFile(in: directory) }
    return fileSystem.ownerToKeep(vault)
  }

  /// Removes the file, the temporary file of an interrupted write and the record of attempts,
  /// durably.
  ///
  /// The lock files stay.
  public func remove(_ id: VaultID) throws(VaultError) {
    try converting(VaultError.writeFailed) { () throws(FileError) in
      try fileSystem.remove(path(of: id).temporarySibling)
      try fileSystem.remove(path(of: id))
      try attemptFile(of: id).removeWithoutSynchronizing()
      try fileSystem.synchronizeDirectory(directory)
    }
  }

  /// Renames the file to `<id>.vault.retired-<n>` and removes the record of attempts, durably.
  public func retire(_ id: VaultID) throws(VaultError) -> String {
    try converting(VaultError.writeFailed) { () throws(FileError) in
      let taken = Set(try fileSystem.entries(of: directory) ?? [])
      var number = 1
      while taken.contains("\(id).vault.retired-\(number)") { number += 1 }
      let target = directory.appending("\(id).vault.retired-\(number)")
      try fileSystem.rename(path(of: id), to: target)
      try attemptFile(of: id).removeWithoutSynchronizing()
      try fileSystem.synchronizeDirectory(directory)
      return target.string
    }
  }

  /// The paths of the files that ``retire(_:)`` has renamed.
  public func retiredNames() throws(VaultError) -> [String] {
    let names = try converting(VaultError.unreadable) { () throws(FileError) in
      try fileSystem.entries(of: directory) ?? []
    }
    return names.filter { $0.contains(".vault.retired-") }.sorted()
      .map { directory.appending($0).string }
  }

  /// Takes the vault's lock file; waits up to ten seconds for its holder.
  public func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try lockFile(of: id).lock(for: "changing vault '\(id)'", busyTimeout: busyTimeout)
  }

  /// Checks that the vault's lock file is one that this process can lock; it can be missing.
  public func checkLock(of id: VaultID) throws(VaultError) {
    try checkDirectory()
    try lockFile(of: id).check()
  }

  /// Checks that no directory is at the path of the temporary file.
  public func checkWriting(of id: VaultID) throws(VaultError) {
    let temporary = path(of: id).temporarySibling
    guard try status(of: temporary)?.kind == .directory else { return }
    throw .writeFailed(FileError(.remove, temporary, .isDirectory))
  }

  private func lockFile(of id: VaultID) -> LockFile {
    LockFile(directory.appending("\(id).lock"), in: fileSystem)
  }
}

extension FileVaultStore {
  /// The status of the file at the vault's path; nil if there is none.
  ///
  /// - Throws: `unreadable` for a symbolic link, `permissionsTooOpen` for a file that other users
  ///   can read or write.
  func checkedStatus(of id: VaultID) throws(VaultError) -> FileStatus? {
    try checkDirectory()
    let path = path(of: id)
    guard let status = try status(of: path) else { return nil }
    guard status.kind == .regular else {
      throw VaultError(
        .unreadable, "\(path) is not a regular file",
        hint: "move the file itself here; vaults are not read through symbolic links")
    }
    guard !status.isOpenToOthers else {
      throw VaultError(
        .permissionsTooOpen, "other users can read or write \(path)",
        hint: "chmod 600 \(path.shellWord)")
    }
    return status
  }

  /// Refuses a vault directory that other users can read or write; a missing directory is allowed.
  package func checkDirectory() throws(VaultError) {
    guard let status = try status(of: directory) else { return }
    guard status.kind == .directory else {
      throw VaultError(.storeUnavailable, "\(directory) is not a directory")
    }
    guard !status.isOpenToOthers else {
      throw VaultError(
        .permissionsTooOpen, "other users can read or write \(directory)",
        hint: "chmod 700 \(directory.shellWord)")
    }
  }

  private func status(of path: FilePath) throws(VaultError) -> FileStatus? {
    try converting(VaultError.unreadable) { () throws(FileError) in
      try fileSystem.status(of: path)
    }
  }

  /// Creates the home and its vault directory durably; existing directories are unchanged.
  public func prepare() throws(VaultError) {
    try checkDirectory()
    try converting(VaultError.writeFailed) { () throws(FileError) in
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
      // Also for an existing directory: its creator might have died before this step.
      try fileSystem.synchronizeDirectory(home)
    }
  }

  /// Creates a missing directory for the owner of its parent, so that root does not lock a daemon
  /// out.
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

  /// The bytes of `<id>.retry`, or of an unfinished record that counts more failures; nil only if
  /// neither exists.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try attemptFile(of: id).read()
  }

  /// Replaces `<id>.retry`, which gets the owner of the vault's file.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    let owner = try converting(VaultError.writeFailed) { () throws(FileError) in
      try ownerOfFiles(of: fileSystem.status(of: path(of: id)))
    }
    try attemptFile(of: id).write(bytes, owner: owner, durably: durably)
  }

  /// Removes `<id>.retry`, durably; its lock file stays.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    try attemptFile(of: id).remove()
  }

  /// Creates `.<id>.retry.probe` and removes it.
  public func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError) {
    try checkDirectory()
    try attemptFile(of: id).probe()
  }

  /// Takes `<id>.retry.lock`; waits up to half a minute for the attempt that holds it.
  ///
  /// - Throws: `busy`, `fileSizeLimit`, `writeFailed`.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try checkDirectory()
    return try attemptFile(of: id).lock(of: id, busyTimeout: attemptBusyTimeout)
  }
}
