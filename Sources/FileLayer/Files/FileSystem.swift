package import SystemPackage

/// Every durable step that a store takes goes through one of these calls, so that a test can
/// record it, interrupt it and replay it.
///
/// The calls block: they belong on an executor where blocking is allowed. "Absent" is a result,
/// never an error; every other obstacle is an error, so that an unreadable file is not mistaken for
/// a missing one.
package protocol FileSystem: Sendable {
  /// What lies at `path` itself, a symbolic link included (lstat(2)); nil when nothing does.
  func status(of path: FilePath) throws(FileError) -> FileStatus?

  /// All bytes of a regular file; nil when absent.
  ///
  /// - Throws: `EFBIG` when it holds more than `maximumByteCount`; `ELOOP` for a symbolic link;
  ///   `EFTYPE`-like `EINVAL` for anything that is not a regular file.
  func read(_ path: FilePath, maximumByteCount: Int) throws(FileError) -> [UInt8]?

  /// The sorted names in a directory; nil when it is absent.
  func entries(of directory: FilePath) throws(FileError) -> [String]?

  /// Makes a directory with exactly these permissions; one that is there already is left as it is.
  ///
  /// - Parameter owner: whom a new one is given to; nil leaves it to the process.
  func createDirectory(
    _ path: FilePath, permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError)

  /// Makes a file that did not exist (`EEXIST` otherwise) with exactly these permissions, open for
  /// writing.
  func create(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) -> any WritableFile

  /// Replaces `target` by `path` atomically; durable after ``synchronizeDirectory(_:)``.
  func rename(_ path: FilePath, to target: FilePath) throws(FileError)

  /// Gives a file the name `target`, which nothing may have (`EEXIST` otherwise); durable after
  /// ``synchronizeDirectory(_:)``.
  func rename(_ path: FilePath, toFree target: FilePath) throws(FileError)

  /// Removes a file; absent is fine.
  func remove(_ path: FilePath) throws(FileError)

  /// Makes the names in a directory durable.
  func synchronizeDirectory(_ path: FilePath) throws(FileError)

  /// Takes an exclusive flock(2) on a file of its own, made 0600 where it is missing.
  ///
  /// - Parameter owner: whom root can have made the file for, besides the directory's owner.
  /// - Returns: the lock, held until it is released or goes; nil when another process or handle
  ///   holds it and `wait` is false.
  /// - Throws: an error with a ``FileError/refusal`` for a file that is not the process's own.
  func lock(_ path: FilePath, wait: Bool, owner: FileOwner?) throws(FileError) -> FileLock?
}

extension FileSystem {
  /// Takes the lock on a file of the process, or of the directory's owner where root asks.
  package func lock(_ path: FilePath, wait: Bool) throws(FileError) -> FileLock? {
    try lock(path, wait: wait, owner: nil)
  }

  /// Makes a directory that belongs to the process.
  package func createDirectory(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) {
    try createDirectory(path, permissions: permissions, owner: nil)
  }
}

/// A file open for writing, from ``FileSystem/create(_:permissions:)``.
package protocol WritableFile: Sendable {
  /// Appends all bytes.
  func write(_ bytes: [UInt8]) throws(FileError)

  /// Gives the file to an owner; changes nothing when it is theirs already.
  func changeOwner(to owner: FileOwner) throws(FileError)

  /// Makes contents and length durable (fsync(2)).
  func synchronize() throws(FileError)

  /// Closes the file; it is not used afterwards.
  func close()
}
