internal import Glibc
internal import SystemPackage

/// A file that contains a secret: a key, a password, a salt, a recovery code.
package enum SecretFile {
  /// Why a secret file is refused: other users can read or write it; nil if it is accepted.
  ///
  /// Only regular files are checked. A descriptor of the caller, by number or as `/dev/stdin` and
  /// `/dev/fd/N`, is accepted unchecked, and so is a pipe. For a credential in
  /// `$CREDENTIALS_DIRECTORY` the group bits do not count: if systemd grants access to a service
  /// through an access control list, they are the list's mask. See systemd.exec(5) and acl(5).
  ///
  /// - Parameter mode: `st_mode` of the file.
  package static func refusal(mode: UInt32, path: String) -> String? {
    guard mode & S_IFMT == S_IFREG, !isDescriptor(path) else { return nil }
    let others = S_IROTH | S_IWOTH | (isCredential(path) ? 0 : S_IRGRP | S_IWGRP)
    return mode & others == 0 ? nil : "other users can read or write it"
  }

  private static func isDescriptor(_ path: String) -> Bool {
    path == "/dev/stdin" || path.hasPrefix("/dev/fd/") || path.hasPrefix("/proc/self/fd/")
  }

  private static func isCredential(_ path: String) -> Bool {
    guard let value = unsafe getenv("CREDENTIALS_DIRECTORY") else { return false }
    let directory = unsafe FilePath(String(cString: value))
    return !directory.isEmpty
      && FilePath(path).resolvingLinks().starts(with: directory.resolvingLinks())
  }
}
