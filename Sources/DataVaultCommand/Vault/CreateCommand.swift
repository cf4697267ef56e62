internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault create VAULT`.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Make a vault that opens with a password of yours.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var home: HomeOptions
  @OptionGroup var newCredentials: NewCredentialOptions

  func run() async throws {
    let id = try vault.id()
    let home = try home.home()
    // Before anybody types a password for nothing.
    guard try await !Vault.exists(id, in: home.store) else {
      throw CommandFailure(
        .exists, "vault \(id) exists already in \(home.path)",
        hint: id == .messaging
          ? "datavault secure makes it yours, if it is not secured" : "choose another name")
    }
    if id == .messaging, try home.hasDatabase() {
      throw CommandFailure(
        .absent, "there are messages in \(home.path) already, under a key that this vault lacks",
        hint: "restore vaults/messaging.vault from a backup")
    }
    try await home.requireNoSession(of: id)
    _ = try await Vault.create(id, in: home.store, credentials: newCredentials.read(for: id))
    try confirm("made vault \(id)")
  }
}
