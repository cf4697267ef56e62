internal import ArgumentParser
internal import SealedSQLite

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
