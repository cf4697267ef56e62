internal import Glibc
internal import SystemPackage

extension VaultError {
  /// What the kernel's refusal means to whoever asked for a session.
  static func sessionsUnavailable(_ error: KeyringError) -> VaultError {
    let hint =
      switch error.errno.rawValue {
      case EDQUOT:
        "this user has used up the quota of kernel keys: see /proc/key-users"
      case EPERM, EACCES, ENOSYS:
        "containers and service sandboxes often forbid it: give the password each time"
      default: "give the password each time"
      }
    return VaultError(
      .sessionsUnavailable, "the kernel's keyring refuses sessions (\(error))", hint: hint,
      underlying: error)
  }
}
