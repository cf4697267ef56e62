internal import FileLayer
internal import SystemPackage

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
  public func probeAttempts(_ id: VaultID) throws(VaultError) {
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
