internal import Glibc

/// What keeps the daemon itself from starting.
struct DaemonError: Error, CustomStringConvertible {
  /// After sysexits.h.
  let status: Int32
  let description: String

  init(_ status: Int32, _ description: String) {
    self.status = status
    self.description = description
  }

  /// What the system has just said.
  static func current(_ status: Int32, _ description: String) -> DaemonError {
    DaemonError(status, "\(description): \(unsafe String(cString: strerror(errno)))")
  }
}
