package import FileLayer
internal import Glibc
package import SystemPackage

/// The record of attempts to open one vault, in a clear file, with a lock file beside it that stays.
package struct AttemptFile: Sendable {
  let path: FilePath
  let fileSystem: any FileSystem

  /// - Parameter path: where the record is, `<path>.lock` where its lock.
  package init(_ path: FilePath, in fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// The record; nil only when there is none.
  ///
  /// Where an unfinished one counts more failures, it is that: a right secret is answered without
  /// waiting for the disk, and whoever kills each attempt that waits would otherwise never be counted.
  package func read() throws(VaultError) -> [UInt8]? {
    do throws(FileError) {
      let record = try read(path)
      guard let unfinished = try? read(path.temporarySibling),
        failureCount(unfinished) > (record.map(failureCount) ?? 0)
      else { return record }
      return unfinished
    } catch {
      throw .unreadable(error)
    }
  }

  private func read(_ path: FilePath) throws(FileError) -> [UInt8]? {
    try fileSystem.read(path, maximumByteCount: AttemptRecord.maximumByteCount)
  }

  private func failureCount(_ record: [UInt8]) -> Int {
    (try? AttemptRecord(parsing: record))?.failureCount ?? 0
  }

  /// Replaces the record.
  ///
  /// - Parameter durably: whether a power cut may leave the old record, the new one or an empty one,
  ///   which is read as none.
  package func write(
    _ bytes: [UInt8], owner: FileOwner?, durably: Bool
  ) throws(VaultError) {
    do throws(FileError) {
      if durably {
        try fileSystem.replace(
          path, with: bytes, permissions: FileVaultStore.filePermissions, owner: owner)
      } else {
        try replaceWithoutSynchronizing(with: bytes, owner: owner)
      }
    } catch {
      throw .writeFailed(error)
    }
  }

  /// Removes the record, durably.
  package func remove() throws(VaultError) {
    do throws(FileError) {
      guard try removeWithoutSynchronizing() else { return }
      try fileSystem.synchronizeDirectory(path.containingDirectory)
    } catch {
      throw .writeFailed(error)
    }
  }

  /// - Returns: whether there was something to remove.
  @discardableResult
  func removeWithoutSynchronizing() throws(FileError) -> Bool {
    var wasThere = false
    for path in [path.temporarySibling, path] where try fileSystem.status(of: path) != nil {
      try fileSystem.remove(path)
      wasThere = true
    }
    return wasThere
  }

  /// Waits until this caller alone may make an attempt.
  ///
  /// - Throws: `busy`, `writeFailed`; `fileSizeLimit` where this process alone could not write a
  ///   record: whoever sets that limit, also for a program that runs as somebody else, would guess
  ///   without being counted.
  package func lock(
    of id: VaultID, patience: Duration = LockFile.attemptPatience
  ) throws(VaultError) -> VaultStoreLock {
    guard Self.mayWriteRecords else { throw .fileSizeLimit(path) }
    return try LockFile(lockPath, in: fileSystem)
      .lock(for: "trying to open vault '\(id)'", patience: patience)
  }

  /// Tries whether an attempt could be recorded, with a file that goes again; nobody is kept waiting.
  ///
  /// - Throws: `fileSizeLimit`, `writeFailed`.
  package func probe() throws(VaultError) {
    guard Self.mayWriteRecords else { throw .fileSizeLimit(path) }
    do throws(FileError) {
      guard try fileSystem.status(of: path.containingDirectory) != nil else { return }
      // A lock file that belongs to somebody else keeps every attempt from being recorded.
      if try fileSystem.status(of: lockPath) != nil {
        try fileSystem.lock(lockPath, wait: false)?.release()
      }
      try writeProbe()
    } catch {
      throw .writeFailed(error)
    }
  }

  private func writeProbe() throws(FileError) {
    var probe = path.removingLastComponent()
    probe.append(".\(path.lastComponent?.string ?? "").probe")
    try fileSystem.remove(probe)
    do throws(FileError) {
      let file = try fileSystem.create(probe, permissions: FileVaultStore.filePermissions)
      defer { file.close() }
      try file.write([UInt8](repeating: 0, count: AttemptRecord.maximumByteCount))
      try file.synchronize()
    } catch {
      // Another probe at the same moment has shown that it can be made.
      if error.errno == .fileExists { return }
      if !error.isCrash { try? fileSystem.remove(probe) }
      throw error
    }
    try fileSystem.remove(probe)
  }

  private var lockPath: FilePath {
    var lockPath = path.removingLastComponent()
    lockPath.append("\(path.lastComponent?.string ?? "").lock")
    return lockPath
  }

  private static var mayWriteRecords: Bool {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else {
      return true
    }
    return limit.rlim_cur >= rlim_t(AttemptRecord.maximumByteCount)
  }

  private func replaceWithoutSynchronizing(
    with bytes: [UInt8], owner: FileOwner?
  ) throws(FileError) {
    let temporary = path.temporarySibling
    try fileSystem.remove(temporary)
    do throws(FileError) {
      let file = try fileSystem.create(temporary, permissions: FileVaultStore.filePermissions)
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

/// A file that is there to be locked, among all objects and processes, and that stays.
package struct LockFile: Sendable {
  /// How long somebody waits who wants to change a vault: a change takes milliseconds, one with a
  /// derivation or with many megabytes a second.
  package static let patience = Duration.seconds(10)
  /// How long somebody waits who wants to attempt to open a vault: others may be before them, each
  /// with a derivation, and one with ten million iterations takes seconds.
  package static let attemptPatience = Duration.seconds(30)

  let path: FilePath
  let fileSystem: any FileSystem

  package init(_ path: FilePath, in fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Takes the lock.
  ///
  /// - Parameter activity: what its holder is doing, for the error.
  /// - Throws: `busy`, `writeFailed`.
  package func lock(
    for activity: String, patience: Duration
  ) throws(VaultError) -> VaultStoreLock {
    let lock: FileLock?
    do throws(FileError) {
      try fileSystem.makeLockFile(path)
      lock = try fileSystem.lock(path, patience: patience)
    } catch {
      throw .writeFailed(error)
    }
    guard let lock else { throw .busy(activity, lock: path, after: patience) }
    return VaultStoreLock { lock.release() }
  }
}
