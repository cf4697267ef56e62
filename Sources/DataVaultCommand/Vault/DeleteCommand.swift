internal import ArgumentParser
internal import VaultedDatabase

/// `datavault delete VAULT`.
struct DeleteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete a vault and all it holds, without its password.")

  @OptionGroup var vault: VaultArgument
  @Flag(help: "Delete it although its database exists, which nothing can open afterwards.")
  var force = false
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let id = try vault.id()
    try await VaultedDatabase.deleteVault(id, of: home.home(), force: force)
    try confirm("deleted vault \(id)")
  }
}
