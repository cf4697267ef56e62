package import FileLayer
internal import Glibc
package import SystemPackage

/// The file that records the attempts to open one vault, unencrypted, with a permanent lock file
/// beside it.
package struct AttemptFile: Sendable {
  let path: FilePath
  let fileSystem: any FileSystem

  /// - Parameter path: the path of the record; the lock file is `<path>.lock`.
  package init(_ path: FilePath, in fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// The record; nil only when there is none.
  ///
  /// If an unfinished record counts more failures, that one is returned. A right secret is answered
  /// before the disk has confirmed the record. An attacker who kills every attempt that waits would
  /// otherwise never be counted.
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
  /// - Parameter durably: whether the new record must be durable on return. Otherwise a power cut
  ///   can leave the old record, the new one or an empty one, which counts as no record.
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

  /// - Returns: whether a record was removed.
  @discardableResult
  func removeWithoutSynchronizing() throws(FileError) -> Bool {
    var wasThere = false
    for path in [path.temporarySibling, path] where try fileSystem.status(of: path) != nil {
      try fileSystem.remove(path)
      wasThere = true
    }
    return wasThere
  }

  /// Waits for the exclusive right to make an attempt.
  ///
  /// - Throws: `busy`, `writeFailed`; `fileSizeLimit` if this process cannot write a record. A user
  ///   who sets that limit, also for a program that runs as another user, could otherwise try
  ///   passwords without being counted.
  package func lock(
    of id: VaultID, patience: Duration = LockFile.attemptPatience
  ) throws(VaultError) -> VaultStoreLock {
    guard Self.canWriteRecords else { throw .fileSizeLimit(path) }
    return try LockFile(lockPath, in: fileSystem)
      .lock(for: "trying to open vault '\(id)'", patience: patience)
  }

  /// Checks with a temporary file whether an attempt could be recorded; it does not wait for a
  /// lock.
  ///
  /// - Throws: `fileSizeLimit`, `writeFailed`.
  package func probe() throws(VaultError) {
    guard Self.canWriteRecords else { throw .fileSizeLimit(path) }
    do throws(FileError) {
      guard try fileSystem.status(of: path.containingDirectory) != nil else { return }
      // A lock file of another user prevents every attempt from being recorded.
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
      // A concurrent probe has shown that the file can be made.
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

  private static var canWriteRecords: Bool {
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

/// A permanent file that serves as a lock among all objects and processes.
package struct LockFile: Sendable {
  /// The time that a caller waits to change a vault.
  ///
  /// A change takes milliseconds; one with a derivation or with many megabytes takes a second.
  package static let patience = Duration.seconds(10)
  /// The time that a caller waits to attempt to open a vault.
  ///
  /// Others can be waiting before it, each with a derivation. A derivation of ten million
  /// iterations takes seconds.
  package static let attemptPatience = Duration.seconds(30)

  let path: FilePath
  let fileSystem: any FileSystem

  package init(_ path: FilePath, in fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Takes the lock.
  ///
  /// - Parameter activity: what the holder of the lock is doing, for the error.
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
