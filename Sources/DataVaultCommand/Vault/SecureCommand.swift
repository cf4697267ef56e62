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
