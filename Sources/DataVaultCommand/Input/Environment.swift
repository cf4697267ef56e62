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
