internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import Glibc
internal import VaultCrypto

/// The arguments `VAULT NAME` of the item commands.
struct ItemArguments: ParsableArguments {
  @OptionGroup var vault: VaultArgument

  @Argument(help: "The item's name: 1 to 255 bytes.", completion: Completion.items)
  var name: String
}

/// The command `datavault get VAULT NAME`.
struct GetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Write an item to standard output, exactly as it was stored.",
    discussion: """
      Example:
        datavault get messaging api-token
      """)

  @OptionGroup var item: ItemArguments
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let vault = try await open(item.vault.id())
    let value = try await vault.item(item.name)
    try OutputDescriptor.standardOutput.writeAll(value.bytes)
  }
}

/// The command `datavault set VAULT NAME`.
struct SetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Store standard input as an item, exactly as it is.",
    discussion: """
      Example:
        datavault set messaging api-token < token.txt

      An item has at most 1 MiB. It is a string if it is UTF-8, otherwise binary.
      """)

  @OptionGroup var item: ItemArguments
  @Flag(help: "Store the item as binary even if it is UTF-8.") var binary = false
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try SecretRules.checkStandardInputIsFree(credentials.sources)
  }

  func run() async throws {
    let vault = try await open(item.vault.id())
    let value = try SecretReader(STDIN_FILENO, name: "standard input")
      .read(maximumByteCount: VaultItem.maximumByteCount)
    if !binary, try await isStored(value, as: .string, in: vault) { return }
    try await vault.set(value, kind: .binary, for: item.name)
  }

  /// Stores a value as this kind, unless the vault refuses the kind for it.
  ///
  /// - Returns: false if the vault refused, because the value is not UTF-8.
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

/// The command `datavault items VAULT`.
struct ItemsCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "items", abstract: "List the names and kinds of a vault's items.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let names = try await open(vault.id()).itemNames()
    let items = names.map { ItemReport(name: $0.name, kind: $0.kind.rawValue) }
    try report.print(["items": items]) {
      items.map { "\($0.kind)\t\($0.name.onOneLine)\n" }.joined()
    }
  }
}

/// An item in the report of `items`.
private struct ItemReport: Encodable {
  let name: String
  let kind: String
}

/// The command `datavault unset VAULT NAME`.
struct UnsetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "unset", abstract: "Remove an item from a vault.")

  @OptionGroup var item: ItemArguments
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let id = try item.vault.id()
    try confirmation.require("delete item '\(item.name)' of vault '\(id)'")
    try await open(id).removeItem(item.name)
  }
}
