internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault slots remove VAULT SLOT`.
struct SlotsRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Let a password, recovery code or key file open a vault no more.",
    discussion: """
      The vault keeps its keys: who opened it before, or has an older copy of its file, may hold \
      them. datavault rotate makes new ones.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(
    help: ArgumentHelp(
      "The slot, as slots list shows it, or its name alone.", valueName: "slot"))
  var slot: String

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let vault = try await access.open(vault.id())
    try await vault.removeSlot(named: slot)
    try confirm("removed slot \(slot) of vault \(vault.id)")
  }
}
