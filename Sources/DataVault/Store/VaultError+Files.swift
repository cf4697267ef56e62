package import FileLayer
package import SystemPackage

extension VaultError {
  /// A file that may be there but cannot be read.
  package static func unreadable(_ error: FileError) -> VaultError {
    VaultError(.unreadable, "\(error)", hint: hint(for: error), underlying: error)
  }

  /// A directory that may be there but cannot be listed.
  static func unavailable(_ error: FileError) -> VaultError {
    VaultError(.storeUnavailable, "\(error)", hint: hint(for: error), underlying: error)
  }

  /// A change that did not happen, or of which that is not certain.
  package static func writeFailed(_ error: FileError) -> VaultError {
    VaultError(
      error.refusal == nil ? .writeFailed : .foreignFile, "\(error)",
      hint: error.hint ?? hint(for: error), underlying: error)
  }

  /// A lock that somebody else does not give back.
  package static func busy(_ what: String, lock path: FilePath, after patience: Duration)
    -> VaultError
  {
    VaultError(
      .busy, "somebody else has been \(what) for more than \(patience.components.seconds) seconds",
      hint: "try again; `fuser \(path)` shows who holds the lock")
  }

  /// An attempt that is not taken, because this process could not record it.
  static func fileSizeLimit(_ path: FilePath) -> VaultError {
    VaultError(
      .fileSizeLimit,
      "no attempt is taken: this process may not write what it would record in \(path)",
      hint: "raise its limit for the size of files (`ulimit -f`, LimitFSIZE= of a systemd unit)")
  }

  private static func hint(for error: FileError) -> String? {
    if error.operation == .synchronize {
      return "the disk did not confirm the change; open the vault again to see whether it happened"
    }
    return switch error.errno {
    case .permissionDenied, .notPermitted: "run as the user to whom \(error.path) belongs"
    case .noSpace, .diskQuotaExceeded: "free some space; the vault is as it was"
    case .readOnlyFileSystem: "the file system is mounted read-only"
    case .tooManySymbolicLinkLevels: "a vault is never behind a symbolic link"
    default: nil
    }
  }
}
