package import FileLayer
internal import Synchronization
package import SystemPackage

/// A file system that logs each step with a recorder, and fails where the recorder demands it.
///
/// Reads are not logged and work until the simulated crash; from then on everything fails.
package struct RecordingFileSystem: FileSystem {
  private let base: any FileSystem
  private let recorder: FileRecorder

  package init(_ base: any FileSystem = LinuxFileSystem(), recorder: FileRecorder) {
    self.base = base
    self.recorder = recorder
  }

  package func status(of path: FilePath) throws(FileError) -> FileStatus? {
    try recorder.requireRunning(.status, path)
    return try base.status(of: path)
  }

  package func read(_ path: FilePath, maximumByteCount: Int) throws(FileError) -> [UInt8]? {
    try recorder.requireRunning(.read, path)
    return try base.read(path, maximumByteCount: maximumByteCount)
  }

  package func readPieces(
    of path: FilePath, _ body: ([UInt8]) throws(FileError) -> Void
  ) throws(FileError) {
    try recorder.requireRunning(.read, path)
    try base.readPieces(of: path, body)
  }

  package func entries(of directory: FilePath) throws(FileError) -> [String]? {
    try recorder.requireRunning(.list, directory)
    return try base.entries(of: directory)
  }

  package func createDirectory(
    _ path: FilePath, permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError) {
    try recorder.require(.createDirectory(path), .createDirectory, path)
    try base.createDirectory(path, permissions: permissions, owner: owner)
  }

  package func create(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) -> any WritableFile {
    try recorder.require(.create(path), .create, path)
    let file = try base.create(path, permissions: permissions)
    return RecordingWritableFile(base: file, path: path, recorder: recorder)
  }

  package func rename(_ path: FilePath, to target: FilePath) throws(FileError) {
    try recorder.require(.rename(path, to: target), .rename, path)
    try base.rename(path, to: target)
  }

  package func rename(_ path: FilePath, toFree target: FilePath) throws(FileError) {
    try recorder.require(.rename(path, to: target), .rename, path)
    try base.rename(path, toFree: target)
  }

  package func remove(_ path: FilePath) throws(FileError) {
    try recorder.require(.remove(path), .remove, path)
    try base.remove(path)
  }

  package func removeDirectory(_ path: FilePath) throws(FileError) {
    try recorder.require(.remove(path), .remove, path)
    try base.removeDirectory(path)
  }

  package func synchronizeDirectory(_ path: FilePath) throws(FileError) {
    try recorder.require(.synchronizeDirectory(path), .synchronize, path)
    try base.synchronizeDirectory(path)
  }

  package func lock(
    _ path: FilePath, wait: Bool, owner: FileOwner?
  ) throws(FileError) -> FileLock? {
    try recorder.require(.lock(path), .lock, path)
    guard let lock = try base.lock(path, wait: wait, owner: owner) else { return nil }
    return FileLock { [recorder] in
      _ = recorder.admit(.unlock(path))
      lock.release()
    }
  }
}

/// A file whose steps are logged.
private final class RecordingWritableFile: WritableFile {
  private let base: any WritableFile
  private let path: FilePath
  private let recorder: FileRecorder
  private let offset = Mutex<Int64>(0)

  init(base: any WritableFile, path: FilePath, recorder: FileRecorder) {
    self.base = base
    self.path = path
    self.recorder = recorder
  }

  func write(_ bytes: [UInt8]) throws(FileError) {
    let start = offset.withLock { $0 }
    try recorder.require(.write(path, offset: start, bytes: bytes), .write, path)
    try base.write(bytes)
    offset.withLock { $0 += Int64(bytes.count) }
  }

  func changeOwner(to owner: FileOwner) throws(FileError) {
    try recorder.require(.changeOwner(path, owner), .changeOwner, path)
    try base.changeOwner(to: owner)
  }

  func synchronize() throws(FileError) {
    try recorder.require(.synchronize(path), .synchronize, path)
    try base.synchronize()
  }

  func rename(toFree target: FilePath) throws(FileError) {
    try recorder.require(.rename(path, to: target), .rename, path)
    try base.rename(toFree: target)
  }

  func close() { base.close() }
}

extension FileRecorder {
  fileprivate func require(
    _ event: FileEvent, _ operation: FileError.Operation, _ path: FilePath
  ) throws(FileError) {
    if let errno = admit(event) { throw FileError(operation, path, errno, isCrash: hasCrashed) }
  }

  fileprivate func requireRunning(
    _ operation: FileError.Operation, _ path: FilePath
  ) throws(FileError) {
    if hasCrashed { throw FileError(operation, path, .ioError, isCrash: true) }
  }
}
