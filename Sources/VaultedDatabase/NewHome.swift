internal import DataVault
internal import FileLayer
internal import Glibc
internal import SystemPackage

/// The staging directory `.NAME.new`, which is renamed to `NAME` when it is complete and durable.
///
/// If the process is killed, `NAME` does not exist, or is complete. The next process that makes `NAME` removes what is
/// left of the directory.
final class NewHome {
  /// The home under its temporary name.
  let home: DataVaultHome

  private let place: FilePath
  private let lock: FileLock
  private var isFinished = false
  private var fileSystem: any FileSystem { home.fileSystem }

  /// Makes the directory, with `vaults` in it.
  ///
  /// - Parameters:
  ///   - place: the path of the home, which must be free, or an empty directory.
  ///   - model: has the file system and the parameters of the new home.
  /// - Throws: `alreadyExists`; `busy` while another process makes the same home; `inputOutput`.
  init(at place: FilePath, like model: DataVaultHome) throws {
    self.place = place
    home = DataVaultHome(place.temporarySibling, like: model)
    try DataVaultHome(place, like: model).requireFree()
    // Its final path can be longer, but not its temporary one.
    try home.requireShortPath()
    let owner = try Self.owner(at: place, model.fileSystem)
    try model.fileSystem.createDirectory(
      home.path, permissions: .ownerReadWriteExecute, owner: owner)
    try Self.requireOwn(home, userID: owner?.userID ?? geteuid())
    guard let lock = try Self.lock(home, owner: owner) else {
      throw VaultedDatabaseError(
        .busy, "another process is making \(place)", hint: "try again when it has finished")
    }
    self.lock = lock
    try removeContents()
    try home.store.prepare()
  }

  /// The owner of a home that root makes: that of the empty directory in its place, otherwise of the parent.
  private static func owner(
    at place: FilePath, _ fileSystem: any FileSystem
  ) throws(FileError) -> FileOwner? {
    let inPlace = try fileSystem.status(of: place) == nil ? place.containingDirectory : place
    return try fileSystem.ownerOfNewFile(in: inPlace)
  }

  /// Takes the home's lock; nil if another process holds it.
  private static func lock(_ home: DataVaultHome, owner: FileOwner?) throws(FileError) -> FileLock?
  {
    // The lock itself would make a file of root.
    if let owner, try home.fileSystem.status(of: home.lockPath) == nil {
      try home.fileSystem.make(home.lockPath, with: [], owner: owner)
    }
    return try home.fileSystem.lock(home.lockPath, wait: false)
  }

  /// Throws unless the directory is new, or an earlier call has left it: everything in it is removed.
  private static func requireOwn(_ home: DataVaultHome, userID: UInt32) throws {
    let vaults = try home.fileSystem.status(of: home.path.appending("vaults"))
    let names = try home.fileSystem.entries(of: home.path) ?? []
    let directories = try names.filter {
      try home.fileSystem.status(of: home.path.appending($0))?.kind == .directory
    }
    guard let status = try home.fileSystem.status(of: home.path), status.kind == .directory,
      status.owner.userID == userID, !status.isOpenToOthers,
      names.isEmpty || names.contains("messaging.lock"),
      vaults.map({ $0.kind == .directory }) ?? true, directories.allSatisfy({ $0 == "vaults" })
    else {
      throw VaultedDatabaseError(
        .foreignFile, "\(home.path) is not what an interrupted command has left",
        hint: "move it away, or use a directory of this user alone")
    }
  }

  deinit {
    if !isFinished { discard() }
    lock.release()
  }

  /// Gives the home its name, durably.
  func finish() throws {
    try fileSystem.synchronizeDirectory(home.path)
    try DataVaultHome(place, like: home).requireFree()
    try fileSystem.rename(home.path, to: place)
    isFinished = true
    do {
      try fileSystem.synchronizeDirectory(place.containingDirectory)
    } catch {
      throw VaultedDatabaseError(
        .inputOutput, "\(place) is whole, but a power cut can undo its name: \(error)",
        hint: "check the disk; keep it if it is still there after a restart", underlying: error)
    }
  }

  private func discard() {
    try? removeContents()
    try? fileSystem.removeDirectory(home.path.appending("vaults"))
    try? fileSystem.remove(home.lockPath)
    try? fileSystem.removeDirectory(home.path)
  }

  /// Removes everything except the lock file; a home has no directory but `vaults`.
  private func removeContents() throws {
    for directory in [home.path.appending("vaults"), home.path] {
      for name in try fileSystem.entries(of: directory) ?? [] {
        let path = directory.appending(name)
        guard path != home.lockPath, try fileSystem.status(of: path)?.kind != .directory else {
          continue
        }
        try fileSystem.remove(path)
      }
    }
  }
}

extension DataVaultHome {
  fileprivate init(_ path: FilePath, like model: DataVaultHome) {
    self.init(
      path, fileSystem: model.fileSystem, vaultParameters: model.vaultParameters,
      baseVFS: model.baseVFS)
  }

  /// Throws `alreadyExists` unless a home can be made at this path: it is free, or an empty directory.
  package func requireFree() throws(VaultedDatabaseError) {
    do throws(FileError) {
      guard let status = try fileSystem.status(of: path) else { return }
      if status.kind == .directory, try fileSystem.entries(of: path)?.isEmpty == true { return }
    } catch {
      throw VaultedDatabaseError(any: error)
    }
    throw VaultedDatabaseError(
      .alreadyExists, "\(path) already exists", hint: "choose a new path, or an empty directory")
  }
}
