internal import ArgumentParser
internal import CommandInterface
internal import SealedSQLite
internal import SystemPackage

/// The command `datavault database`.
struct DatabaseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "database", abstract: "Check, salvage and convert database files.",
    discussion: """
      Example:
        datavault database verify app.db --key-item messaging/app-key

      These commands work on any sealed database, not only on the queue of a home. A key is 32 \
      bytes from a file, from a file descriptor, or from a binary item of a vault. 'shell' opens \
      the queue with the key that its vault keeps.
      """,
    subcommands: [
      DatabaseVerifyCommand.self, DatabaseSalvageCommand.self, DatabaseExportCommand.self,
      DatabaseImportCommand.self, DatabaseShellCommand.self,
    ])
}

/// The option `--format`: the format of the file to convert from or to.
enum DatabaseFormat: String, CaseIterable, ExpressibleByArgument {
  case sealed
  case sqlcipher4
  case plain
}

/// The arguments `FILE NEW-FILE` of the commands that copy.
struct FileAndNewFile: ParsableArguments {
  @Argument(help: "The database. It is not changed.", completion: .file()) var file: String

  @Argument(help: "The new database. The file must not exist.", completion: .file())
  var newFile: String

  func validate() throws {
    try Self.requireName(file, "FILE")
    try Self.requireName(newFile, "NEW-FILE")
  }

  /// Refuses an empty path: some calls take it for a directory, others for a missing file.
  static func requireName(_ path: String, _ argument: String) throws {
    guard !path.isEmpty else { throw ValidationError("\(argument) must not be empty") }
  }

  /// Refuses the name of a file that SQLite has beside a database: SQLite would read or delete it.
  static func requireNewName(_ path: String, _ argument: String) throws {
    try requireName(path, argument)
    guard !["-journal", "-wal", "-shm"].contains(where: path.hasSuffix) else {
      throw ValidationError(
        "\(argument) must not end in -journal, -wal or -shm, as files of SQLite do")
    }
  }

  var source: FilePath { FilePath(file) }
  var target: FilePath { FilePath(newFile) }
}

/// The command `datavault database export FILE NEW-FILE --format FORMAT`.
struct DatabaseExportCommand: DatabaseFileCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Copy a sealed database to another format or another key.",
    discussion: """
      Example:
        datavault database export app.db new.db --format plain --key-file app.key

      A plain file is not encrypted: anyone who can read the file can read its contents.
      """)

  @OptionGroup var files: FileAndNewFile
  @Option(help: "The format of the new file.") var format: DatabaseFormat
  @OptionGroup var newKeyOptions: KeyOptions<NewDatabase>
  @OptionGroup var keyOptions: KeyOptions<ExistingDatabase>
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try checkSources(with: newKeyOptions) }

  func run() async throws {
    let source = try await file(.sealed, at: files.source, key: keyOptions)
    let target = try await file(format, at: files.target, key: newKeyOptions)
    try ProgressLine.during("exporting") { progress in
      try SealedDatabase.copy(from: source, to: target, progress: progress)
    }
    try confirm("exported \(files.file) to \(files.newFile)")
  }
}

/// The command `datavault database import FILE NEW-FILE --format FORMAT`.
struct DatabaseImportCommand: DatabaseFileCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Create a sealed database from a file of another format.",
    discussion: """
      Example:
        datavault database import old.db app.db --format plain --new-key-file app.key

      The old file stays readable. After you have checked the new file, remove the old one and its \
      copies.
      """)

  @OptionGroup var files: FileAndNewFile
  @Option(help: "The format of the old file.") var format: DatabaseFormat
  @OptionGroup var newKeyOptions: KeyOptions<NewDatabase>
  @OptionGroup var keyOptions: KeyOptions<ExistingDatabase>
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try checkSources(with: newKeyOptions) }

  func run() async throws {
    let source = try await file(format, at: files.source, key: keyOptions)
    let target = try await file(.sealed, at: files.target, key: newKeyOptions)
    try ProgressLine.during("importing") { progress in
      try SealedDatabase.copy(from: source, to: target, progress: progress)
    }
    try confirm("imported \(files.file) into \(files.newFile)")
  }
}
