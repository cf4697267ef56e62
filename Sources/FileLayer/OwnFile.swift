internal import Glibc
package import SystemPackage

/// How this process opens a file that it makes or goes on with: nothing else in this project does.
///
/// The directory can be one that other users write too. A new file is made by the call that opens it, or not
/// at all (`O_EXCL`). A file that is there is judged by its descriptor, so that no other process can exchange it
/// between the look and the use.
package enum OwnFile {
  /// What a file that is there is opened for.
  package enum Purpose: Sendable {
    /// To be read and written: a regular file of the effective user, with one name and no access for others.
    case contents
    /// To be locked: a regular file with one name, of the effective user.
    ///
    /// Root also takes one of the directory's owner, for whom it makes such files, or of `owner`.
    case lock(owner: FileOwner?)
    /// To be closed again, which others notice: a regular file.
    case notification
  }

  /// Makes a file that did not exist, open for reading and writing, with exactly these permissions.
  ///
  /// - Throws: `EEXIST` when something has the name.
  package static func create(
    _ path: FilePath, permissions: FilePermissions, for operation: FileError.Operation = .create
  ) throws(FileError) -> FileDescriptor {
    let number = unsafe Glibc.open(
      path.string, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions.rawValue)
    guard number >= 0 else { throw FileError(operation, path, .current) }
    // The process's umask must not decide.
    guard fchmod(number, permissions.rawValue) == 0 else {
      let reason = Errno.current
      _ = Glibc.close(number)
      throw FileError(operation, path, reason)
    }
    return FileDescriptor(rawValue: number)
  }

  /// Opens a file that is there, for reading and writing; it does not wait for a pipe or a device.
  ///
  /// - Throws: an error with a ``FileError/refusal`` when somebody else could have made the file.
  package static func open(
    _ path: FilePath, _ purpose: Purpose, for operation: FileError.Operation
  ) throws(FileError) -> FileDescriptor {
    let number = unsafe Glibc.open(
      path.string, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    let reason = Errno.current
    var status = stat()
    guard number >= 0 else {
      let isThere = unsafe lstat(path.string, &status) == 0
      throw FileError(
        operation, path, reason, refusal: isThere ? refusal(status, path, purpose) : nil)
    }
    guard unsafe fstat(number, &status) == 0 else {
      let reason = Errno.current
      _ = Glibc.close(number)
      throw FileError(operation, path, reason)
    }
    if let refusal = refusal(status, path, purpose) {
      _ = Glibc.close(number)
      throw FileError(operation, path, .notPermitted, refusal: refusal)
    }
    return FileDescriptor(rawValue: number)
  }

  /// Makes sure that a file which is locked has no other name.
  ///
  /// Only once it is locked, because whoever held the lock before can have been renaming it.
  static func requireOneName(
    _ descriptor: FileDescriptor, _ path: FilePath
  ) throws(FileError) {
    // Again where a maker has just removed the second name.
    for _ in 0..<2 {
      var status = stat()
      var sibling = stat()
      guard unsafe fstat(descriptor.rawValue, &status) == 0 else {
        throw FileError(.lock, path, .current)
      }
      if status.st_nlink <= 1 { return }
      // What a kill has left of `make(_:with:)` is no name that somebody else gave.
      if status.st_nlink == 2, unsafe lstat(path.ownSibling.string, &sibling) == 0,
        sibling.st_ino == status.st_ino, sibling.st_dev == status.st_dev
      {
        return
      }
    }
    throw FileError(.lock, path, .notPermitted, refusal: manyNames)
  }

  private static let manyNames = "it has more than one name (hard links)"

  /// Why a file is not one to go on with; nil when it is.
  private static func refusal(
    _ status: stat, _ path: FilePath, _ purpose: Purpose
  ) -> String? {
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFLNK: return "it is a symbolic link"
    case S_IFDIR: return "it is a directory"
    default: return "it is not a regular file"
    }
    switch purpose {
    case .notification: return nil
    case .lock(let owner):
      let isOwners = geteuid() == 0 && owners(path, owner).contains(status.st_uid)
      return isOwners ? nil : foreignOwner(status)
    case .contents:
      if let reason = foreignOwner(status) { return reason }
      if status.st_mode & 0o066 != 0 { return "other users may read or write it" }
      return status.st_nlink > 1 ? manyNames : nil
    }
  }

  private static func foreignOwner(_ status: stat) -> String? {
    status.st_uid == geteuid() ? nil : "it belongs to user \(status.st_uid)"
  }

  private static func owners(_ path: FilePath, _ owner: FileOwner?) -> [uid_t] {
    var directory = stat()
    let isThere = unsafe lstat(path.containingDirectory.string, &directory) == 0
    return [owner?.userID, isThere ? directory.st_uid : nil].compactMap { $0 }
  }
}

/// A file that a secret is read from: a key, a password, a salt, a recovery code.
package enum SecretFile {
  /// Why a secret is not taken from a file: other users may read or write it; nil when it may be taken.
  ///
  /// Only regular files are judged. A descriptor of the caller's own is taken as it is, by number or as
  /// `/dev/stdin` and `/dev/fd/N`, and so is a pipe. For a credential in `$CREDENTIALS_DIRECTORY` the bits of
  /// the group do not count: where systemd grants it to a service by an access control list, they are the
  /// list's mask. See systemd.exec(5) and acl(5).
  ///
  /// - Parameter mode: `st_mode` of the file.
  package static func refusal(mode: UInt32, path: String) -> String? {
    guard mode & S_IFMT == S_IFREG, !isDescriptor(path) else { return nil }
    let others = S_IROTH | S_IWOTH | (isCredential(path) ? 0 : S_IRGRP | S_IWGRP)
    return mode & others == 0 ? nil : "other users may read or write it"
  }

  private static func isDescriptor(_ path: String) -> Bool {
    path == "/dev/stdin" || path.hasPrefix("/dev/fd/") || path.hasPrefix("/proc/self/fd/")
  }

  private static func isCredential(_ path: String) -> Bool {
    guard let value = unsafe getenv("CREDENTIALS_DIRECTORY") else { return false }
    let directory = unsafe String(cString: value)
    return directory.hasPrefix("/") && path.hasPrefix(directory + "/") && !path.contains("/../")
  }
}
