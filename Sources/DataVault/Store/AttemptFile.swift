package import FileLayer
internal import Glibc
internal import Synchronization
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
}

/// Holds the descriptors that recording an attempt needs, until it is recorded.
///
/// Without it, other threads could take the last descriptors while the attempt is evaluated.
final class DescriptorReserve: Sendable {
  /// For the vault's lock, a file beside it, and the connection of a store on the session bus.
  private static let count = 4
  /// How many must be free besides: for the lock of attempts, for files that are read, and for libdispatch, which
  /// ends the process if it cannot open one.
  private static let spareCount = 4

  private let numbers: Mutex<[Int32]>

  /// - Throws: if this process, or the system, can open no more files.
  init() throws(FileError) {
    var opened: [Int32] = []
    for _ in 0..<Self.count + Self.spareCount {
      let number = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
      if number >= 0 {
        opened.append(number)
        continue
      }
      let error = FileError(.read, "/dev/null", Errno(rawValue: errno))
      // A sandbox without the device shows nothing about limits.
      guard error.isResourceLimit else { break }
      for number in opened { _ = Glibc.close(number) }
      throw error
    }
    for number in opened.dropFirst(Self.count) { _ = Glibc.close(number) }
    numbers = Mutex(Array(opened.prefix(Self.count)))
  }

  /// Closes the descriptors; a second call does nothing.
  func close() {
    let numbers = numbers.withLock { numbers in
      defer { numbers = [] }
      return numbers
    }
    for number in numbers { _ = Glibc.close(number) }
  }

  deinit { close() }
}

extension FileError {
  /// Whether a limit of this process, or of the system, is the cause.
  var isResourceLimit: Bool {
    [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory].contains(errno)
  }
}

/// A permanent file that serves as a lock among all objects and processes.
package struct LockFile: Sendable {
  /// The time that a caller waits to change a vault.
  ///
  /// A change takes milliseconds; one with a derivation or with many megabytes takes a second.
  package static let busyTimeout = Duration.seconds(10)
  /// The time that a caller waits to attempt to open a vault.
  ///
  /// Others can be waiting before it, each with a derivation. A derivation of ten million
  /// iterations takes seconds.
  package static let attemptBusyTimeout = Duration.seconds(30)

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
    for activity: String, busyTimeout: Duration
  ) throws(VaultError) -> VaultStoreLock {
    let lock = try converting(VaultError.writeFailed) { () throws(FileError) in
      try fileSystem.makeLockFile(path)
      return try fileSystem.lock(path, busyTimeout: busyTimeout)
    }
    guard let lock else { throw .busy(activity, lock: path, after: busyTimeout) }
    return VaultStoreLock { lock.release() }
  }

  /// Checks whether an existing file can be locked; does not wait and creates nothing.
  ///
  /// - Throws: as ``lock(for:busyTimeout:)``, but for `busy` and for a file system that is read-only, which says
  ///   nothing about the file.
  package func check() throws(VaultError) {
    do throws(FileError) {
      guard try fileSystem.status(of: path) != nil else { return }
      try fileSystem.lock(path, wait: false)?.release()
    } catch {
      guard error.errno != .readOnlyFileSystem else { return }
      throw .writeFailed(error)
    }
  }
}
