internal import ArgumentParser
internal import SystemPackage

/// The `FILE NEW-FILE` of the commands that copy.
struct FileAndNewFile: ParsableArguments {
  @Argument(help: ArgumentHelp("The database, which stays as it is.", valueName: "file"))
  var file: String

  @Argument(
    help: ArgumentHelp("Where the new one is to lie; nothing may be there.", valueName: "new-file"))
  var newFile: String

  var source: FilePath { FilePath(file) }
  var target: FilePath { FilePath(newFile) }
}
