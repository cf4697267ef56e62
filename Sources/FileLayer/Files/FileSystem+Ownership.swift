internal import Glibc
package import SystemPackage

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
