internal import ArgumentParser
internal import SystemPackage

/// The `FILE NEW-FILE` of the commands that copy.
struct FileAndNewFile: ParsableArguments {
  @Argument(help: ArgumentHelp("The database, which stays as it is.", valueName: "file"))
  var file: String

  @Argument(
    help: ArgumentHelp("Where the new one is to lie; nothing may be there.", valueName: "new-file"))
  var newFile: String

  func validate() throws {
    try Self.requireName(file, "FILE")
    try Self.requireName(newFile, "NEW-FILE")
  }

  /// An empty path would be that of a directory to some calls, and nothing to others.
  static func requireName(_ path: String, _ argument: String) throws {
    guard !path.isEmpty else { throw ValidationError("\(argument) is empty") }
  }

  var source: FilePath { FilePath(file) }
  var target: FilePath { FilePath(newFile) }
}
