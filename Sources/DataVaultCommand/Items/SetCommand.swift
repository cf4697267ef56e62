internal import ArgumentParser
internal import DataVault
internal import Glibc
internal import VaultCrypto

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
