internal import ArgumentParser
internal import DataVault
internal import MessagingQueue
internal import VaultedDatabase

/// `datavault queue accept-rollback`.
struct AcceptRollbackCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-rollback",
    abstract: "Go on with an older copy of the messages.",
    discussion: """
      The vault notes now and then how far the messages have come. Messages that are behind that, a \
      copy from a backup or a database whose log was lost, are refused (65), until this accepts them: \
      what they lack is gone, and what had been acknowledged since may come again.
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home.home()
    let vault = try await VaultAccess(home: home, credentials: credentials).open(.messaging)
    guard let rollback = try await MessagingEngine.acceptRollback(home, vault: vault) else {
      return try confirm("the messages are not behind the vault: there is nothing to accept")
    }
    try confirm(
      "accepted the messages as of commit \(rollback.foundCommitNumber); "
        + "the vault had seen commit \(rollback.expectedCommitNumber)")
  }
}
