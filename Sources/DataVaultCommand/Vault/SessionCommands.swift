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

/// `datavault lock VAULT`, `datavault lock --all`.
struct LockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "End what datavault unlock began.",
    discussion: """
      Within a second, programs that opened the vault through it have locked it. Those that were \
      given the password themselves are not concerned.
      """)

  @Argument(help: ArgumentHelp("The vault: a-z, 0-9, - and _.", valueName: "vault"))
  var vault: String?

  @Flag(help: "All vaults of this user, in all homes.") var all = false

  @OptionGroup var home: HomeOptions

  func validate() throws {
    guard (vault == nil) == all else { throw ValidationError("name a vault, or give --all") }
  }

  func run() async throws {
    guard let vault else {
      let count = try VaultSession.endAll()
      return try confirm("ended \(count) session\(count == 1 ? "" : "s")")
    }
    let id = try VaultID(vault)
    let store = try home.home().store
    if try await VaultSession.end(id, in: store) {
      return try confirm("locked vault \(id)")
    }
    // A session may outlive its vault, but no session of no vault is a slip of the fingers.
    _ = try await Vault.get(id, in: store)
    try confirm("vault \(id) has no session")
  }
}
