internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault unlock VAULT`.
struct UnlockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Let your commands and engines open a vault for a while.",
    discussion: """
      They need no password until the time is over or datavault lock ends it. What opens the vault \
      is in the kernel's keyring of this user meanwhile.
      """)

  @OptionGroup var vault: VaultArgument

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("How long: 30s, 15m, 8h, 7d.", valueName: "time"))
  var duration = DurationArgument.standardSession

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard (VaultSession.shortest...VaultSession.longest).contains(duration.duration) else {
      throw ValidationError("--for is at least 1 second and at most 366 days")
    }
  }

  func run() async throws {
    let id = try vault.id()
    let home = try home.home()
    guard try await Vault.get(id, in: home.store).status().isSecured else {
      throw CommandFailure(
        .policy, "vault \(id) is not secured: everybody opens it without a session",
        hint: id.securingHint)
    }
    // Before anybody types a password for nothing.
    try VaultSession.checkAvailability()
    // A session alone does not prolong itself.
    let vault = try await VaultAccess(home: home, credentials: credentials, usesSession: false)
      .open(id)
    try await vault.openSession(for: duration.duration)
    try confirm("unlocked vault \(id) for \(duration.defaultValueDescription)")
  }
}
