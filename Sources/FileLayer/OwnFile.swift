internal import Glibc
package import SystemPackage

/// The only functions of this project that open a file to create it or to continue with it.
///
/// Other users can have write access to the directory. A new file is therefore created with
/// `O_EXCL` by the call that opens it. An existing file is checked through its descriptor, so that
/// no other process can exchange it between the check and the use.
package enum OwnFile {
  /// The purpose for which an existing file is opened.
  package enum Purpose: Sendable {
    /// Reading and writing: a regular file of the effective user, with one name and without access
    /// for others.
    case contents
    /// Locking: a regular file of the effective user, with one name.
    ///
    /// Root also accepts a file of the directory's owner, for whom root creates such files, or of
    /// `owner`.
    case lock(owner: FileOwner?)
    /// Notification: opening and closing a regular file, which other processes notice.
    case notification
  }

  /// Creates a file with exactly these permissions and opens it for reading and writing.
  ///
  /// - Throws: `EEXIST` if the path exists.
  package static func create(
    _ path: FilePath, permissions: FilePermissions, for operation: FileError.Operation = .create
  ) throws(FileError) -> FileDescriptor {
    let number = unsafe Glibc.open(
      path.string, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, permissions.rawValue)
    guard number >= 0 else { throw FileError(operation, path, .current) }
    // The process's umask must not change the permissions.
    guard fchmod(number, permissions.rawValue) == 0 else {
      let reason = Errno.current
      _ = Glibc.close(number)
      throw FileError(operation, path, reason)
    }
    return FileDescriptor(rawValue: number)
  }

  /// Opens an existing file for reading and writing; it does not wait for a pipe or a device.
  ///
  /// - Throws: an error with a ``FileError/refusal`` if another user could have made the file.
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

  /// Checks that a locked file has no other name.
  ///
  /// The check works only after the lock is held, because the previous holder can have been
  /// renaming the file.
  static func requireOneName(
    _ descriptor: FileDescriptor, _ path: FilePath
  ) throws(FileError) {
    // A second try, because the creator of the file might just have removed the second name.
    for _ in 0..<2 {
      var status = stat()
      var sibling = stat()
      guard unsafe fstat(descriptor.rawValue, &status) == 0 else {
        throw FileError(.lock, path, .current)
      }
      if status.st_nlink <= 1 { return }
      // A second name that a killed `make(_:with:)` left behind was not given by another user.
      if status.st_nlink == 2, unsafe lstat(path.ownSibling.string, &sibling) == 0,
        sibling.st_ino == status.st_ino, sibling.st_dev == status.st_dev
      {
        return
      }
    }
    throw FileError(.lock, path, .notPermitted, refusal: manyNames)
  }

  private static let manyNames = "it has more than one name (hard links)"

  /// Why a file is refused; nil if it is accepted.
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
      if status.st_mode & 0o066 != 0 { return "other users can read or write it" }
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
