internal import ArgumentParser
package import DataVault
internal import Glibc
internal import SystemPackage

/// The process's environment.
///
/// An empty variable counts as absent.
package enum Environment {
  /// The value of a variable; nil where it is absent or empty.
  package static subscript(name: String) -> String? {
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

  /// The value of `DATAVAULT_REQUIRE_SECURED`, for all commands.
  package static func requiresSecuredVault() throws(CommandFailure) -> Bool {
    let variable = "DATAVAULT_REQUIRE_SECURED"
    switch Self[variable] {
    case nil, "0": return false
    case "1": return true
    default:
      throw CommandFailure(
        .usage, "the environment variable \(variable) is neither 0 nor 1", hint: "set it to 1 or 0")
    }
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

/// The rules for files and descriptors that carry secrets.
package enum SecretRules {
  /// Refuses a stream that is given twice, under one name or two.
  ///
  /// The program reads each stream to its end: a second secret from it would be empty.
  package static func check(_ sources: [SecretSource]) throws {
    var streams: [InputStream] = []
    for stream in sources.compactMap(InputStream.init) {
      guard !streams.contains(where: stream.isSame) else {
        throw ValidationError("each secret needs its own file, pipe or file descriptor")
      }
      streams.append(stream)
    }
  }

  /// Refuses standard input as the source of a secret where it already carries the data.
  package static func checkStandardInputIsFree(_ sources: [SecretSource]) throws {
    let input = InputStream(.descriptor(STDIN_FILENO))
    guard !sources.compactMap(InputStream.init).contains(where: { input?.isSame(as: $0) ?? false })
    else {
      throw ValidationError("standard input carries the data: it cannot also carry a secret")
    }
  }
}

/// What a file or a descriptor refers to, as far as reading takes something away from it.
private struct InputStream {
  private let number: Int32?
  /// Nil for a terminal, which can be asked again, and for what does not exist.
  private let node: (device: dev_t, number: ino_t)?
  /// Whether it is a file that each opening reads from its beginning.
  private let isReadAgain: Bool

  init?(_ source: SecretSource) {
    var status = stat()
    let exists: Bool
    switch source {
    case .descriptor(let descriptor):
      number = descriptor
      exists = unsafe fstat(descriptor, &status) == 0
    case .file(let path):
      number = nil
      exists = unsafe stat(path.string, &status) == 0
    case .credential, .command: return nil
    }
    let kind = status.st_mode & S_IFMT
    node = exists && kind != S_IFCHR ? (status.st_dev, status.st_ino) : nil
    isReadAgain = number == nil && kind == S_IFREG
  }

  func isSame(as other: InputStream) -> Bool {
    if let number, number == other.number { return true }
    guard let node, let otherNode = other.node else { return false }
    return node == otherNode && !(isReadAgain && other.isReadAgain)
  }
}
