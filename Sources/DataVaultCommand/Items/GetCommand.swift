internal import ArgumentParser
internal import DataVault

/// `datavault get VAULT NAME`.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Write an item to standard output, exactly as it was stored.")

  @OptionGroup var item: ItemArguments
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let vault = try await access.open(item.vault.id())
    let value = try await vault.item(item.name)
    try OutputDescriptor.standardOutput.writeAll(value.bytes)
  }
}
