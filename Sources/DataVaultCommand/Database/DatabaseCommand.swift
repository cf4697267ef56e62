internal import ArgumentParser
internal import SealedSQLite
internal import SystemPackage

/// `datavault database`.
struct DatabaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "database", abstract: "Check, rescue and exchange database files.",
    discussion: """
      Any sealed database, not only the messages of a home. A key is 32 bytes in a file, from a \
      descriptor, or a binary item of a vault.
      """,
    subcommands: [
      DatabaseVerifyCommand.self, DatabaseSalvageCommand.self, DatabaseExportCommand.self,
      DatabaseImportCommand.self,
    ])
}

/// `--format`, of the file that is not the sealed one.
enum DatabaseFormat: String, CaseIterable, ExpressibleByArgument {
  case sealed
  case sqlcipher4
  case plain
}

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

/// `datavault database export FILE NEW-FILE --format FORMAT`.
struct DatabaseExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write a sealed database as a file of another format, or under another key.",
    discussion: "A plain file can be read by everyone who can read the file.")

  @OptionGroup var files: FileAndNewFile
  @Option(help: "The new file's format.") var format: DatabaseFormat
  @OptionGroup var access: DatabaseAccess
  @OptionGroup var newKeyOptions: NewKeyOptions

  func validate() throws { try access.checkDescriptors(with: newKeyOptions) }

  func run() async throws {
    let source = try await access.file(.sealed, at: files.source, key: access.keyOptions.choice)
    let target = try await access.file(format, at: files.target, key: newKeyOptions.choice)
    try ProgressLine.during("exporting") { progress in
      try SealedDatabase.copy(from: source, to: target, progress: progress)
    }
    try confirm("exported \(files.file) to \(files.newFile)")
  }
}

/// `datavault database import FILE NEW-FILE --format FORMAT`.
struct DatabaseImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Make a sealed database of a file of another format.",
    discussion: """
      The old file stays as it is, readable as it was: remove it, and its copies, when the new one \
      has been checked.
      """)

  @OptionGroup var files: FileAndNewFile
  @Option(help: "The old file's format.") var format: DatabaseFormat
  @OptionGroup var access: DatabaseAccess
  @OptionGroup var newKeyOptions: NewKeyOptions

  func validate() throws { try access.checkDescriptors(with: newKeyOptions) }

  func run() async throws {
    let source = try await access.file(format, at: files.source, key: access.keyOptions.choice)
    let target = try await access.file(.sealed, at: files.target, key: newKeyOptions.choice)
    try ProgressLine.during("importing") { progress in
      try SealedDatabase.copy(from: source, to: target, progress: progress)
    }
    try confirm("imported \(files.file) into \(files.newFile)")
  }
}
