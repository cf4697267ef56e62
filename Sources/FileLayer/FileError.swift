package import SystemPackage

/// A file operation that failed: which, where, and the system's reason.
package struct FileError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was being done.
  package enum Operation: String, Sendable {
    case status = "look at"
    case read = "read"
    case list = "list"
    case createDirectory = "make the directory"
    case create = "create"
    case write = "write to"
    case truncate = "truncate"
    case changeOwner = "change the owner of"
    case synchronize = "synchronize"
    case rename = "rename"
    case remove = "remove"
    case lock = "lock"
  }

  package let operation: Operation
  package let path: FilePath
  package let errno: Errno

  /// Why a file is not one to go on with, because somebody else could have made it; nil for all else.
  package let refusal: String?

  /// Whether a test's recorder ended the world here: nothing after it happens.
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

  /// What to do about a file that was refused.
  package var hint: String? {
    refusal.map { _ in "look whose it is and remove it, or use a directory of this user alone" }
  }

  package var description: String {
    guard let refusal else { return "cannot \(operation.rawValue) \(path): \(errno)" }
    return "\(path) is not a file of this user alone: \(refusal)"
  }
}
