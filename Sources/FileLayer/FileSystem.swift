internal import Glibc
internal import Synchronization
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

extension FileSystem {
  /// Makes a file that did not exist, mode 0600, which gets its name when it is whole and durable.
  ///
  /// Its side name is one that nobody else gives: unlike
  /// ``replace(_:with:permissions:owner:)`` this works in directories that are not ours, where
  /// `.NAME.new` may be anybody's.
  ///
  /// - Throws: `EEXIST` when something has the name; it is left as it is.
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
  /// The side name under which a new file is prepared where others have files too.
  var ownSibling: FilePath {
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "").datavault.new")
    return path
  }
}

extension FileSystem {
  /// Replaces a whole file so that after a crash at any point either the old or the new contents
  /// are there, never neither and never a part.
  ///
  /// The steps are: a temporary file in the same directory, fsync, owner, rename, fsync of the
  /// directory. The new contents are durable on return. When a step up to the rename fails, the
  /// temporary file is removed and the old contents stand; when only the last one fails, the new
  /// contents are there, and a power cut may bring back the old.
  ///
  /// - Parameter owner: whom the file is given to; nil leaves it to the process.
  package func replace(
    _ path: FilePath, with bytes: [UInt8], permissions: FilePermissions, owner: FileOwner?
  ) throws(FileError) {
    let temporary = path.temporarySibling
    try remove(temporary)  // a leftover of a crash; the caller's lock keeps it from being in use
    do throws(FileError) {
      let file = try create(temporary, permissions: permissions)
      defer { file.close() }
      try file.write(bytes)
      if let owner { try file.changeOwner(to: owner) }
      try file.synchronize()
      try rename(temporary, to: path)
    } catch {
      if !error.isCrash { try? remove(temporary) }
      throw error
    }
    try synchronizeDirectory(path.containingDirectory)
  }
}

extension FilePath {
  /// The directory that holds this path's name; the working directory for a bare name.
  package var containingDirectory: FilePath {
    let directory = removingLastComponent()
    return directory.isEmpty ? "." : directory
  }

  /// The side name under which a file is prepared before it takes this path's place.
  package var temporarySibling: FilePath {
    var path = self
    path.removeLastComponent()
    path.append(".\(lastComponent?.string ?? "").new")
    return path
  }
}

/// Root's edit must not make a daemon's files root's; others cannot give files away.
extension FileSystem {
  /// The owner that a file to be replaced keeps; nil where the process may not decide.
  package func ownerToKeep(_ status: FileStatus) -> FileOwner? {
    geteuid() == 0 ? status.owner : nil
  }

  /// The owner of a file that root makes in a directory: the directory's; nil where the process's
  /// own user is right.
  package func ownerOfNewFile(in directory: FilePath) throws(FileError) -> FileOwner? {
    guard geteuid() == 0, let owner = try status(of: directory)?.owner, owner.userID != 0 else {
      return nil
    }
    return owner
  }

  /// Makes a missing lock file for the owner of its directory: one that root owns would lock a
  /// daemon out of its own vault.
  package func makeLockFile(_ path: FilePath) throws(FileError) {
    guard try ownerOfNewFile(in: path.containingDirectory) != nil, try status(of: path) == nil
    else { return }
    do throws(FileError) {
      // It gets its name when it is the owner's already: root may be killed in between.
      try make(path, with: [])
    } catch {
      guard !error.isCrash, try status(of: path) != nil else { throw error }
      // Somebody else was quicker.
    }
  }
}

extension FileSystem {
  /// Takes the lock that ``lock(_:wait:)`` takes, and waits for it no longer than this.
  ///
  /// flock(2) knows no limit, so it is asked again and again: after 1 ms first, at most 16 ms later.
  ///
  /// - Returns: nil when somebody still holds it then.
  package func lock(_ path: FilePath, patience: Duration) throws(FileError) -> FileLock? {
    let deadline = ContinuousClock.now + patience
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

/// An exclusive lock, held until ``release()`` or until the last reference goes.
package final class FileLock: Sendable {
  private let body: Mutex<(@Sendable () -> Void)?>

  package init(_ body: @escaping @Sendable () -> Void) {
    self.body = Mutex(body)
  }

  /// Gives the lock back; a second call does nothing.
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

/// Who a file belongs to.
package struct FileOwner: Sendable, Equatable {
  package let userID: UInt32
  package let groupID: UInt32

  package init(userID: UInt32, groupID: UInt32) {
    self.userID = userID
    self.groupID = groupID
  }
}

/// What lies at a path.
package struct FileStatus: Sendable, Equatable {
  /// The kinds that a store tells apart.
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

  /// Whether users other than the owner may read or write.
  package var isOpenToOthers: Bool {
    !permissions.isDisjoint(with: [.groupReadWrite, .otherReadWrite])
  }
}
