internal import ArgumentParser
internal import SealedSQLite

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
