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
  /// If the temporary file counts more failures, it is returned. An attempt that a kill ended before
  /// the rename is then counted, too.
  package func read() throws(VaultError) -> [UInt8]? {
    try converting(VaultError.unreadable) { () throws(FileError) -> [UInt8]? in
      let record = try read(path)
      guard let unfinished = try? read(path.temporarySibling),
        failureCount(unfinished) > (record.map(failureCount) ?? 0)
      else { return record }
      return unfinished
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
    try converting(VaultError.writeFailed) { () throws(FileError) in
      try fileSystem.replace(
        path, with: bytes, permissions: FileVaultStore.filePermissions, owner: owner,
        durably: durably)
    }
  }

  /// Removes the record, durably.
  package func remove() throws(VaultError) {
    try converting(VaultError.writeFailed) { () throws(FileError) in
      guard try removeWithoutSynchronizing() else { return }
      try fileSystem.synchronizeDirectory(path.containingDirectory)
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
  /// - Throws: `busy`, `writeFailed`; `fileSizeLimit` or `openFileLimit` if a limit of this process prevents a record. A user
  ///   who sets that limit, also for a program that runs as another user, could otherwise try
  ///   passwords without being counted.
  package func lock(
    of id: VaultID, busyTimeout: Duration = LockFile.attemptBusyTimeout
  ) throws(VaultError) -> VaultStoreLock {
    guard Self.canWriteRecords else { throw .fileSizeLimit(path) }
    try openReserve().close()
    let lock = try LockFile(lockPath, in: fileSystem)
      .lock(for: "trying to open vault '\(id)'", busyTimeout: busyTimeout)
    // Opened only now, so that callers who wait for the lock hold no descriptors.
    return VaultStoreLock(reserve: try openReserve()) { lock.release() }
  }

  private func openReserve() throws(VaultError) -> DescriptorReserve {
    try converting({ .openFileLimit(path, $0) }) { () throws(FileError) in
      try DescriptorReserve()
    }
  }

  /// Checks with a temporary file whether an attempt could be recorded; it does not wait for a
  /// lock.
  ///
  /// - Throws: `fileSizeLimit`, `openFileLimit`, `writeFailed`.
  package func probe() throws(VaultError) {
    guard Self.canWriteRecords else { throw .fileSizeLimit(path) }
    try openReserve().close()
    try converting(VaultError.writeFailed) { () throws(FileError) in
      guard try fileSystem.status(of: path.containingDirectory) != nil else { return }
      // A lock file of another user prevents every attempt from being recorded.
      if try fileSystem.status(of: lockPath) != nil {
        try fileSystem.lock(lockPath, wait: false)?.release()
      }
      // A record takes the place of anything but a directory.
      for path in [path, path.temporarySibling]
      where try fileSystem.status(of: path)?.kind == .directory {
        throw FileError(.write, path, .isDirectory)
      }
      try writeProbe()
    }
  }

  private func writeProbe() throws(FileError) {
    let probe = path.removingLastComponent()
      .appending(".\(path.lastComponent?.string ?? "").probe")
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

  private var lockPath: FilePath { FilePath(path.string + ".lock") }

  private static var canWriteRecords: Bool {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else {
      return true
    }
    return limit.rlim_cur >= rlim_t(AttemptRecord.maximumByteCount)
  }
}
