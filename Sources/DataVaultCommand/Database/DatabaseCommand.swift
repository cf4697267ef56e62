internal import ArgumentParser

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
