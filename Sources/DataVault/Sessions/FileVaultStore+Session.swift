internal import Glibc
internal import SystemPackage

extension FileVaultStore {
  /// The file's path without symbolic links above it: a home that is reached by two paths, as a
  /// systemd service's `/var/lib/private/NAME` is, has one session.
  ///
  /// It is the same while the home is not there, because its file system is unmounted: what is there of
  /// the path is resolved, and the rest is as it was given.
  public func sessionIdentity(of id: VaultID) -> String? {
    var there = directory
    var rest = FilePath("\(id).vault")
    while true {
      if let resolved = unsafe realpath(there.isEmpty ? "." : there.string, nil) {
        defer { unsafe free(resolved) }
        return unsafe FilePath(String(cString: resolved)).pushing(rest).string
      }
      guard let name = there.lastComponent else { return location(of: id) }
      there.removeLastComponent()
      rest = FilePath(root: nil, [name]).pushing(rest)
    }
  }
}
