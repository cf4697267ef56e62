internal import ArgumentParser
internal import DataVault
internal import SystemPackage
internal import VaultedDatabase

/// `datavault export VAULT FILE`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write a vault into a new file, sealed as it is.",
    discussion: """
      No password is needed, and the same password opens the file: a backup, or the way to another \
      store. datavault import takes it in.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(help: ArgumentHelp("The new file; it must not exist.", valueName: "file"))
  var file: String
  @OptionGroup var home: HomeOptions

  func run() async throws {
    guard !file.isEmpty else { throw CommandFailure(.usage, "the name of the new file is empty") }
    let id = try vault.id()
    try await Vault.export(id, from: home.home().store, to: FilePath(file))
    try confirm("exported vault \(id) to \(file)")
  }
}
