internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault policy set VAULT`.
struct PolicySetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Change a vault's policy; what is not named stays.",
    discussion: """
      The password in place is not looked at. If it breaks a new rule, the next command that needs \
      it ends with 78, and datavault change-password still takes it.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions
  @OptionGroup var changes: PolicyChanges

  func run() async throws {
    let id = try vault.id()
    let vault = try await VaultAccess(home: home.home(), credentials: credentials).open(id)
    var policy = try await vault.policy()
    changes.apply(to: &policy)
    try await vault.setPolicy(policy)
    try confirm("set the policy of vault \(id)")
  }
}
