internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault secure`.
struct SecureCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "secure",
    abstract: "Move the messaging vault from the publicly known password to yours.",
    discussion: """
      Everything gets new keys, and the messages are sealed anew. Nobody may have them open \
      meanwhile. A messaging vault that does not exist is made.
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var newCredentials: NewCredentialOptions

  func run() async throws {
    let home = try home.home()
    if try await Vault.exists(.messaging, in: home.store) {
      // Before anybody types a password for nothing.
      guard try await !Vault.get(.messaging, in: home.store).status().isSecured else {
        throw CommandFailure(
          .exists, "the messaging vault in \(home.path) is secured already",
          hint: "datavault change-password messaging changes its password")
      }
    } else {
      try await home.requireNoSession(of: .messaging)
    }
    try await VaultedDatabase.secure(home, with: newCredentials.read(for: .messaging))
    try confirm("secured the messaging vault")
  }
}

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

/// `datavault clean-up-first-run`.
struct CleanUpFirstRunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clean-up-first-run",
    abstract: "Put aside a messaging vault that an earlier installation left.",
    discussion: """
      Only a vault whose database is missing, and only to a side name. Make sure first that the \
      file system with the database is mounted: an unmounted one looks the same.
      """)

  @OptionGroup var home: HomeOptions

  func run() async throws {
    let sideName = try await VaultedDatabase.cleanUpFirstRun(home.home())
    if let sideName {
      try confirm("the old messaging vault is now \(sideName)")
    } else {
      try confirm("nothing to clean up")
    }
  }
}

extension VaultID {
  /// What gives the vault a password of its own.
  var securingHint: String {
    self == .messaging ? "run datavault secure" : "run datavault change-password \(self)"
  }
}
