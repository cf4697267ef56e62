internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault change-password VAULT`.
struct ChangePasswordCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "change-password", abstract: "Set another password, and salt, for a vault.",
    discussion: """
      A salt is replaced as well: without a new one, the vault has none afterwards. The current \
      password may have expired, or break the vault's policy; the new one must keep it.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions
  @OptionGroup var newCredentials: NewCredentialOptions

  func validate() throws {
    try DescriptorRules.check(credentials.descriptors + newCredentials.descriptors)
  }

  func run() async throws {
    let id = try vault.id()
    let home = try home.home()
    let isSecured = try await Vault.get(id, in: home.store).status().isSecured
    if id == .messaging, !isSecured {
      throw CommandFailure(
        .policy, "the messaging vault is not secured: another password alone would not make it so",
        hint: "run datavault secure, which makes new keys for the messages too")
    }
    let vault = try await VaultAccess(home: home, credentials: credentials).open(
      id, toChangePassword: true)
    try await vault.changePassword(to: newCredentials.read(for: id))
    try confirm("changed the password of vault \(id)")
  }
}
