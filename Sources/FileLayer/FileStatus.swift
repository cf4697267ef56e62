internal import Glibc
package import SystemPackage

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

  init(_ status: stat) {
    kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      default: .other
      }
    permissions = FilePermissions(rawValue: status.st_mode & 0o7777)
    owner = FileOwner(userID: status.st_uid, groupID: status.st_gid)
    byteCount = Int64(status.st_size)
  }

  /// Whether users other than the owner can read or write the file.
  package var isOpenToOthers: Bool {
    !permissions.isDisjoint(with: [.groupReadWrite, .otherReadWrite])
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
}
