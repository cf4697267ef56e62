internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import VaultedDatabase

/// The command `datavault secure`.
struct SecureCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "secure",
    abstract: "Set your own password for the message queue.",
    discussion: """
      Example:
        datavault secure --new-password-file password.txt

      Until then the queue opens with a publicly known password. The command creates new keys and \
      re-encrypts all messages. In a new home it creates the messaging vault, so it can be the \
      first command.

      It fails with 75 while another process has the queue open: stop that process first. Until \
      the command ends, no other process can open the queue.
      """)

  @OptionGroup var newCredentials: NewCredentialOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let home = try home.home()
    if try await Vault.exists(.messaging, in: home.store) {
      // Checked before the command asks for a password.
      guard try await !Vault.get(.messaging, in: home.store).status().isSecured else {
        throw CommandFailure(
          .exists, "the messaging vault in \(home.path) is already secured",
          hint: "to change its password, run datavault change-password messaging")
      }
    } else {
      try await home.requireNoSession(of: .messaging)
    }
    let credentials = try newCredentials.read(for: .messaging)
    let line = ProgressLine("re-encrypting")
    defer { line.clear() }
    try await DatabaseCoordinator(home: home).secure(
      with: credentials, anchorStorage: EngineAnchorStorage(), progress: { line.show($0) })
    line.clear()
    try confirm("secured the messaging vault")
  }
}

/// The command `datavault change-password VAULT`.
struct ChangePasswordCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "change-password", abstract: "Change a vault's password and salt.",
    discussion: """
      Examples:
        datavault change-password backup
        datavault change-password backup --recovery-code-prompt

      The command replaces the salt too: without a new salt the vault has none afterwards. It \
      accepts a current password that has expired or breaks the vault's policy. The new password \
      must follow the policy. A recovery code or a key file replaces a forgotten password.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var newCredentials: NewCredentialOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try SecretRules.check(credentials.sources + newCredentials.sources)
  }

  func run() async throws {
    let id = try vault.id()
    let isSecured = try await Vault.get(id, in: home().store).status().isSecured
    if id == .messaging, !isSecured {
      throw CommandFailure(
        .policy, "the messaging vault is not secured, and a new password alone does not secure it",
        hint: "run datavault secure, which also re-encrypts the queue with new keys")
    }
    let vault = try await open(id, toChangePassword: true)
    try await vault.changePassword(to: newCredentials.read(for: id))
    try confirm("changed the password of vault '\(id)'")
  }
}

/// The command `datavault clean-up-first-run`.
struct CleanUpFirstRunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clean-up-first-run",
    abstract: "Set aside a messaging vault of an earlier installation.",
    discussion: """
      The command renames the vault only if its database is missing. It deletes nothing. First \
      make sure that the file system of the database is mounted: an unmounted file system looks \
      the same as a missing database.
      """)

  @OptionGroup var home: HomeOptions

  func run() async throws {
    let sideName = try await VaultedDatabase.cleanUpFirstRun(home.home())
    if let sideName {
      try confirm("renamed the old messaging vault to \(sideName)")
    } else {
      try confirm("nothing to clean up")
    }
  }
}
