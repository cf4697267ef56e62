internal import Glibc
internal import Synchronization
package import SystemPackage

/// The file operations of a store, as a protocol, so that a test can record, interrupt and replay
/// every durable step.
///
/// The calls block, so callers must run them on an executor that can block. A missing file is a
/// result, never an error. Every other obstacle is an error, so that an unreadable file is not
/// mistaken for a missing one.
package protocol FileSystem: Sendable {
  /// The status of `path` itself, without following a symbolic link (lstat(2)); nil if nothing
  /// exists there.
  func status(of path: FilePath) throws(FileError) -> FileStatus?

  /// All bytes of a regular file; nil if it does not exist.
  ///
  /// - Throws: `EFBIG` for a file larger than `maximumByteCount`; `ELOOP` for a symbolic link;
  ///   `EINVAL` for anything else that is not a regular file.
  func read(_ path: FilePath, maximumByteCount: Int) throws(FileError) -> [UInt8]?

  /// The sorted names in a directory; nil if it does not exist.
  func entries(of directory: FilePath) throws(FileError) -> [String]?

  /// Creates a directory with exactly these permissions; an existing one is unchanged.
  ///
  /// - Parameter owner: the owner of a new directory; nil for the process's user.
  func createDirectory(
    _ path: FilePath, permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError)

  /// Creates a file with exactly these permissions and opens it for writing; `EEXIST` if it exists.
  func create(
    _ path: FilePath, permissions: FilePermissions
  ) throws(FileError) -> any WritableFile

  /// Renames `path` to `target` and replaces `target` atomically; durable after
  /// ``synchronizeDirectory(_:)``.
  func rename(_ path: FilePath, to target: FilePath) throws(FileError)

  /// Renames a file to `target`, which must not exist (`EEXIST` otherwise); durable after
  /// ``synchronizeDirectory(_:)``.
  func rename(_ path: FilePath, toFree target: FilePath) throws(FileError)

  /// Removes a file; a missing file is not an error.
  func remove(_ path: FilePath) throws(FileError)

  /// Makes the names in a directory durable.
  func synchronizeDirectory(_ path: FilePath) throws(FileError)

  /// Takes an exclusive flock(2) on a dedicated file, which is created with mode 0600 if it is
  /// missing.
  ///
  /// - Parameter owner: a further accepted owner of the file when root asks, besides the
  ///   directory's owner.
  /// - Returns: the lock, held until it is released; nil if another process or handle holds it and
  ///   `wait` is false.
  /// - Throws: an error with a ``FileError/refusal`` for a file of another user.
  func lock(_ path: FilePath, wait: Bool, owner: FileOwner?) throws(FileError) -> FileLock?
}

extension FileSystem {
  /// Takes the lock on a file of the process's user, or for root also of the directory's owner.
  package func lock(_ path: FilePath, wait: Bool) throws(FileError) -> FileLock? {
    try lock(path, wait: wait, owner: nil)
  }

  /// Creates a directory that belongs to the process's user.
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

  /// Changes the file's owner; does nothing if the owner is already right.
  func changeOwner(to owner: FileOwner) throws(FileError)

  /// Makes contents and length durable (fsync(2)).
  func synchronize() throws(FileError)

  /// Closes the file, which must not be used afterwards.
  func close()
}

extension FileSystem {
  /// Creates a file with mode 0600, which gets its name when it is complete and durable.
  ///
  /// The temporary name is specific to this software. Unlike
  /// ``replace(_:with:permissions:owner:durably:)``, this therefore works in shared directories, where
  /// `.NAME.new` can belong to others.
  ///
  /// - Throws: `EEXIST` if the path exists; the existing file is unchanged.
  package func make(_ path: FilePath, with bytes: [UInt8]) throws(FileError) {
    let temporary = path.ownSibling
    let directory = path.containingDirectory
    let owner = try ownerOfNewFile(in: directory)
    try remove(temporary)  // a leftover of a crash
    do throws(FileError) {
      let file = try create(temporary, permissions: .ownerReadWrite)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      try file.synchronize()
      try rename(temporary, toFree: path)
    } catch {
      if !error.isCrash { try? remove(temporary) }
      throw error
    }
    try synchronizeDirectory(directory)
  }
}

extension FilePath {
  /// The temporary name for a new file in a shared directory.
  var ownSibling: FilePath {
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "").datavault.new")
    return path
  }
}

extension FileSystem {
  /// Replaces a whole file, so that a crash leaves either the complete old or the complete new
  /// contents.
  ///
  /// The steps are: a temporary file in the same directory, fsync, owner, rename, fsync of the
  /// directory. The new contents are durable on return. If a step up to the rename fails, the
  /// temporary file is removed and the old contents stay. If only the last step fails, the new
  /// contents are in place, and a power cut can bring back the old ones.
  ///
  /// - Parameters:
  ///   - owner: the new owner of the file; nil for the process's user.
  ///   - durably: if false, both calls of fsync are left out, and a power cut can leave the old
  ///     contents, the new ones or an empty file.
  package func replace(
    _ path: FilePath, with bytes: [UInt8], permissions: FilePermissions, owner: FileOwner?,
    durably: Bool = true
  ) throws(FileError) {
    let temporary = path.temporarySibling
    try remove(temporary)  // a leftover of a crash; the caller's lock ensures that it is not in use
    do throws(FileError) {
      let file = try create(temporary, permissions: permissions)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      if durably { try file.synchronize() }
      try rename(temporary, to: path)
    } catch {
      if !error.isCrash { try? remove(temporary) }
      throw error
    }
    if durably { try synchronizeDirectory(path.containingDirectory) }
  }
}

extension FilePath {
  /// The directory that contains this path; the working directory for a bare name.
  package var containingDirectory: FilePath {
    let directory = removingLastComponent()
    return directory.isEmpty ? "." : directory
  }

  /// The temporary name for a file that will replace this path.
  package var temporarySibling: FilePath {
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "").new")
    return path
  }
}

/// Ownership of files that root writes: they must keep belonging to the daemon's user.
extension FileSystem {
  /// The owner that a replaced file keeps; nil if the process cannot change owners.
  package func ownerToKeep(_ status: FileStatus) -> FileOwner? {
    geteuid() == 0 ? status.owner : nil
  }

  /// The owner of a file that root creates in a directory: the directory's owner; nil if the
  /// process's user is right.
  package func ownerOfNewFile(in directory: FilePath) throws(FileError) -> FileOwner? {
    guard geteuid() == 0, let owner = try status(of: directory)?.owner, owner.userID != 0 else {
      return nil
    }
    return owner
  }

  /// Creates a missing lock file for the owner of its directory.
  ///
  /// A lock file of root would lock a daemon out of its own vault.
  package func makeLockFile(_ path: FilePath) throws(FileError) {
    guard try ownerOfNewFile(in: path.containingDirectory) != nil, try status(of: path) == nil
    else { return }
    do throws(FileError) {
      // The file gets its name after its owner, because root can be killed in between.
      try make(path, with: [])
    } catch {
      guard !error.isCrash, try status(of: path) != nil else { throw error }
      // Another process was faster.
    }
  }
}

extension FileSystem {
  /// Takes the lock of ``lock(_:wait:)`` and waits for it for a limited time.
  ///
  /// flock(2) has no timeout, so this polls: after 1 ms first, then at intervals of up to 16 ms.
  ///
  /// - Returns: nil if another holder still has the lock after that time.
  package func lock(_ path: FilePath, busyTimeout: Duration) throws(FileError) -> FileLock? {
    let deadline = ContinuousClock.now + busyTimeout
    var pause = Duration.milliseconds(1)
    while true {
      if let lock = try lock(path, wait: false) { return lock }
      let remaining = deadline - ContinuousClock.now
      guard remaining > .zero else { return nil }
      var time = timespec()
      time.tv_nsec = Int(min(pause, remaining).components.attoseconds / 1_000_000_000)
      unsafe nanosleep(&time, nil)
      pause = min(pause * 2, .milliseconds(16))
    }
  }
}

/// An exclusive lock, held until ``release()`` or until the object is released.
package final class FileLock: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>

  package init(_ body: @escaping @Sendable () -> Void) {
    self.body = Mutex(body)
  }

  /// Releases the lock; a second call does nothing.
  package func release() {
    let body = body.withLock { body in
      defer { body = nil }
      return body
    }
    body?()
  }

  deinit {
    release()
  }
}

/// The owner of a file.
package struct FileOwner: Sendable, Equatable {
  package let userID: UInt32
  package let groupID: UInt32

  package init(userID: UInt32, groupID: UInt32) {
    self.userID = userID
    self.groupID = groupID
  }
}

/// The status of a file.
package struct FileStatus: Sendable, Equatable {
  /// The kinds of file that a store distinguishes.
  package enum Kind: Sendable, Equatable {
    case regular, directory, symbolicLink, other
  }

  package let kind: Kind
  package let permissions: FilePermissions
  package let owner: FileOwner
  package let byteCount: Int64

  package init(kind: Kind, permissions: FilePermissions, owner: FileOwner, byteCount: Int64) {
    self.kind = kind
    self.permissions = permissions
    self.owner = owner
    self.byteCount = byteCount
  }

  /// Whether users other than the owner can read or write the file.
  package var isOpenToOthers: Bool {
    !permissions.isDisjoint(with: [.groupReadWrite, .otherReadWrite])
  }
}
