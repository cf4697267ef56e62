internal import ArgumentParser
internal import DataVault
internal import Glibc
internal import VaultCrypto

/// The `VAULT NAME` of the item commands.
struct ItemArguments: ParsableArguments {
  @OptionGroup var vault: VaultArgument

  @Argument(help: ArgumentHelp("The item: 1 to 255 bytes.", valueName: "name"))
  var name: String
}

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

/// `datavault set VAULT NAME`.
struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Store standard input, exactly as it is, under a name.",
    discussion: "It is a string if it is UTF-8, else binary.")

  @OptionGroup var item: ItemArguments
  @Flag(help: "Store it as binary even if it is UTF-8.") var binary = false
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try DescriptorRules.checkStandardInputIsFree(credentials.descriptors)
  }

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let vault = try await access.open(item.vault.id())
    let value = try SecretInput.read(
      descriptor: STDIN_FILENO, name: "standard input",
      maximumByteCount: VaultItem.maximumByteCount)
    if !binary, try await isStored(value, as: .string, in: vault) { return }
    try await vault.set(value, kind: .binary, for: item.name)
  }

  /// Leaves it to the vault to judge whether a value is text.
  private func isStored(
    _ value: borrowing SecretBytes, as kind: VaultItem.Kind, in vault: Vault
  ) async throws -> Bool {
    do {
      try await vault.set(value, kind: kind, for: item.name)
      return true
    } catch  where error.code == .invalidArgument {
      return false
    }
  }
}

/// `datavault names VAULT`.
struct NamesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "names", abstract: "List the items of a vault with their kinds, not their values.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let names = try await access.open(vault.id()).itemNames()
    let items = names.map { ItemReport(name: $0.name, kind: $0.kind.rawValue) }
    try report.print(["items": items]) {
      items.map { "\($0.kind)\t\($0.name.onOneLine)\n" }.joined()
    }
  }
}

/// One line of the report.
private struct ItemReport: Encodable {
  let name: String
  let kind: String
}

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
