internal import FileLayer
internal import SystemPackage

extension FileVaultStore {
  /// The file of a vault's attempts, whether it exists or not.
  func attemptsPath(of id: VaultID) -> FilePath {
    directory.appending("\(id)\(attemptsMark).retry")
  }

  /// The bytes of `<id>.retry`; nil only when it is absent.
  ///
  /// Where an unfinished one counts more failures, it is that: a right secret is answered without
  /// waiting for the disk, and whoever kills each attempt that waits would otherwise never be counted.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    let path = attemptsPath(of: id)
    do throws(FileError) {
      let record = try readRecord(path)
      guard let unfinished = try? readRecord(path.temporarySibling),
        failureCount(unfinished) > (record.map(failureCount) ?? 0)
      else { return record }
      return unfinished
    } catch {
      throw .unreadable(error)
    }
  }

  private func readRecord(_ path: FilePath) throws(FileError) -> [UInt8]? {
    try fileSystem.read(path, maximumByteCount: AttemptRecord.maximumByteCount)
  }

  private func failureCount(_ record: [UInt8]) -> Int {
    (try? AttemptRecord(parsing: record))?.failureCount ?? 0
  }

  /// Replaces `<id>.retry`, which belongs to whom the vault belongs to.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    let path = attemptsPath(of: id)
    do throws(FileError) {
      let owner: FileOwner?
      if attemptsMark.isEmpty, let vault = try fileSystem.status(of: self.path(of: id)) {
        owner = fileSystem.ownerToKeep(vault)
      } else {
        owner = try fileSystem.ownerOfNewFile(in: directory)
      }
      if durably {
        try fileSystem.replace(
          path, with: bytes, permissions: Self.filePermissions, owner: owner)
      } else {
        try replaceWithoutSynchronizing(path, with: bytes, owner: owner)
      }
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Removes `<id>.retry`, durably; its lock file stays.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    do throws(FileError) {
      guard try removeAttemptFiles(id) else { return }
      try fileSystem.synchronizeDirectory(directory)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// - Returns: whether there was something to remove.
  @discardableResult
  func removeAttemptFiles(_ id: VaultID) throws(FileError) -> Bool {
    let path = attemptsPath(of: id)
    var wasThere = false
    for path in [path.temporarySibling, path] where try fileSystem.status(of: path) != nil {
      try fileSystem.remove(path)
      wasThere = true
    }
    return wasThere
  }

  /// Takes `<id>.retry.lock`; waits for whoever is making an attempt.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try checkDirectory()
    do throws(FileError) {
      return try lock(file: directory.appending("\(id)\(attemptsMark).retry.lock"))
    } catch {
      throw .writeFailed(error)
    }
  }

  /// As `replace`, but a power cut may leave the old file, the new one, or an empty one, which is
  /// read as none.
  private func replaceWithoutSynchronizing(
    _ path: FilePath, with bytes: [UInt8], owner: FileOwner?
  ) throws(FileError) {
    let temporary = path.temporarySibling
    try fileSystem.remove(temporary)
    do throws(FileError) {
      let file = try fileSystem.create(temporary, permissions: Self.filePermissions)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      try fileSystem.rename(temporary, to: path)
    } catch {
      if !error.isCrash { try? fileSystem.remove(temporary) }
      throw error
    }
  }
}
