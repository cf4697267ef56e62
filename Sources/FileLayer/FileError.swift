package import SystemPackage

/// The error of a file operation: the operation, the path and the system's reason.
package struct FileError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The operation that failed, with the words for it in ``description``.
  package enum Operation: String, Sendable {
    case status = "inspect"
    case read, list, create, truncate, synchronize, rename, remove, lock
    case createDirectory = "create directory"
    case write = "write to"
    case changeOwner = "change the owner of"
  }

  package let operation: Operation
  package let path: FilePath
  package let errno: Errno

  /// The reason to refuse a file that another user could have created; nil for other errors.
  package let refusal: String?

  /// Whether a test's recorder simulated a crash here, after which no step takes effect.
  package let isCrash: Bool

  package init(
    _ operation: Operation, _ path: FilePath, _ errno: Errno, refusal: String? = nil,
    isCrash: Bool = false
  ) {
    self.operation = operation
    self.path = path
    self.errno = errno
    self.refusal = refusal
    self.isCrash = isCrash
  }

  /// The next step, if one is known.
  package var hint: String? {
    if refusal != nil {
      return "check its owner and remove it, or use a directory of this user alone"
    }
    if operation == .synchronize {
      return "the disk did not confirm the change; open it again to see whether it happened"
    }
    return switch errno {
    case .permissionDenied, .notPermitted: "run as the owner of \(path)"
    case .noSpace, .diskQuotaExceeded: "free some space and try again"
    case .readOnlyFileSystem: "mount the file system read-write"
    case .tooManySymbolicLinkLevels: "replace the symbolic link by the file or directory itself"
    case .isDirectory: "remove the directory \(path)"
    default: nil
    }
  }

  package var description: String {
    guard let refusal else { return "cannot \(operation.rawValue) \(path): \(errno)" }
    return "\(path) is not a file of this user alone: \(refusal)"
  }
}
