internal import Glibc
internal import SystemPackage

extension FileVaultStore {
  /// The file's path without symbolic links above it: a home that is reached by two paths, as a
  /// systemd service's `/var/lib/private/NAME` is, has one session.
  public func sessionIdentity(of id: VaultID) -> String? {
    guard let resolved = unsafe realpath(directory.string, nil) else { return location(of: id) }
    defer { unsafe free(resolved) }
    return unsafe FilePath(String(cString: resolved)).appending("\(id).vault").string
  }
}
