internal import ArgumentParser
internal import DataVault

/// `datavault remove VAULT NAME`.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove an item from a vault.")

  @OptionGroup var item: ItemArguments
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    try await access.open(item.vault.id()).removeItem(item.name)
  }
}
