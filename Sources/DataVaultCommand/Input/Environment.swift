internal import ArgumentParser
internal import Glibc

/// The process's environment.
///
/// An empty variable counts as absent.
enum Environment {
  static subscript(name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// A variable that holds a path; nil where it is absent or empty.
  ///
  /// Swift replaces bytes that are not UTF-8, and the program would open or create another path.
  /// Such a variable is therefore an error.
  static func path(_ name: String) throws(CommandFailure) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    guard let path = unsafe String(validatingCString: value) else {
      throw CommandFailure(
        .usage, "the environment variable \(name) is not UTF-8", hint: "give --home DIR")
    }
    return path.isEmpty ? nil : path
  }

  /// The working directory; nil if it was removed, or its name is not UTF-8.
  static var workingDirectory: String? {
    guard let path = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(path) }
    return unsafe String(validatingCString: path)
  }
}

/// The file descriptors 0, 1 and 2.
enum StandardDescriptors {
  /// Opens each standard descriptor that the parent process has closed.
  ///
  /// Otherwise a file that is opened later, such as the database, would get its number, and receive
  /// what was meant for standard output. `/dev/null` is opened in the wrong mode, so that using the
  /// descriptor is still an error.
  static func occupy() {
    for (descriptor, mode) in [
      (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
    ] where fcntl(descriptor, F_GETFD) < 0 {
      // open(2) returns the lowest free number, which is this one.
      _ = unsafe open("/dev/null", mode)
    }
  }
}

/// The rules for descriptors that carry secrets.
enum DescriptorRules {
  /// Refuses a descriptor that is given twice.
  ///
  /// The program reads each descriptor to its end: a second secret from the same one would be
  /// empty.
  static func check(_ descriptors: [Int32]) throws {
    guard descriptors.allSatisfy({ $0 >= 0 }) else {
      throw ValidationError("a file descriptor must not be negative")
    }
    guard Set(descriptors).count == descriptors.count else {
      throw ValidationError("each secret needs its own file descriptor")
    }
  }

  /// Refuses standard input as the source of a secret where it already carries the data.
  static func checkStandardInputIsFree(_ descriptors: [Int32]) throws {
    guard !descriptors.contains(0) else {
      throw ValidationError("standard input carries the data: it cannot also carry a secret")
    }
  }
}
