internal import Glibc

/// An error that prevents the daemon from starting.
struct DaemonError: Error, CustomStringConvertible {
  /// The exit code, from sysexits.h.
  let status: Int32
  let description: String

  init(_ status: Int32, _ description: String) {
    self.status = status
    self.description = description
  }

  /// An error with the system's message for the current `errno`.
  static func current(_ status: Int32, _ description: String) -> DaemonError {
    DaemonError(status, "\(description): \(unsafe String(cString: strerror(errno)))")
  }
}
