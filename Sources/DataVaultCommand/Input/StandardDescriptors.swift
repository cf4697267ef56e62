internal import Glibc

/// Descriptors 0, 1 and 2.
enum StandardDescriptors {
  /// Takes those that came closed.
  ///
  /// Else a file that is opened later, such as the database, would get their number and then what
  /// was meant for standard output. They take no bytes and give none: using them is still an error.
  static func occupy() {
    for (descriptor, mode) in [
      (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
    ] where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one.
      _ = unsafe open("/dev/null", mode)
    }
  }
}
