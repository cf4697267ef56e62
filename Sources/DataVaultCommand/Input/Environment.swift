internal import ArgumentParser
internal import Glibc

/// The process's environment; a variable that is empty counts as absent.
enum Environment {
  static subscript(name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// A variable that holds a path.
  ///
  /// Swift repairs what is not UTF-8, and something else would be opened or made.
  static func path(_ name: String) throws(CommandFailure) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    guard let path = unsafe String(validatingCString: value) else {
      throw CommandFailure(.usage, "the variable \(name) is not UTF-8", hint: "give --home DIR")
    }
    return path.isEmpty ? nil : path
  }

  /// Where relative paths begin; nil when that directory was removed, or is not UTF-8.
  static var workingDirectory: String? {
    guard let path = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(path) }
    return unsafe String(validatingCString: path)
  }
}

/// The words of the command line.
enum Arguments {
  /// Swift repairs what is not UTF-8: two names, or two homes, that differ there would become one.
  static func requireUTF8() throws(CommandFailure) {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { return }
      guard unsafe String(validatingCString: argument) != nil else {
        throw CommandFailure(
          .usage, "argument \(index) is not UTF-8", hint: "datavault help shows every command")
      }
    }
  }
}

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

/// What holds for descriptors that carry secrets.
enum DescriptorRules {
  /// Each is read to its end: a second secret from the same one would be empty.
  static func check(_ descriptors: [Int32]) throws {
    guard descriptors.allSatisfy({ $0 >= 0 }) else {
      throw ValidationError("a file descriptor is not negative")
    }
    guard Set(descriptors).count == descriptors.count else {
      throw ValidationError("each secret needs a file descriptor of its own")
    }
  }

  /// Standard input cannot carry both.
  static func checkStandardInputIsFree(_ descriptors: [Int32]) throws {
    guard !descriptors.contains(0) else {
      throw ValidationError("standard input carries the data here, not what opens the vault")
    }
  }
}
