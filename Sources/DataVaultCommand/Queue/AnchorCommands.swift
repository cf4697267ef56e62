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

/// `datavault queue rekey`.
struct RekeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Seal all messages anew under a new key.",
    discussion: """
      The vault makes and keeps the key; the password stays. Nobody may have the messages open \
      meanwhile. If it is interrupted, the next opening finishes it.
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home.home()
    let vault = try await VaultAccess(home: home, credentials: credentials).open(.messaging)
    let line = ProgressLine("sealing")
    defer { line.clear() }
    try await VaultedDatabase.changeKey(of: home, vault: vault) { line.show($0) }
    try confirm("sealed the messages under a new key")
  }
}

/// What the reports of `queue verify` and `queue salvage` say of the vault's rollback anchor.
struct AnchorReport: Encodable {
  /// `known`, `missing` or `unreadable`.
  let state: String
  /// The commit of the anchor, where the database lacks it.
  let expectedCommitNumber: Int64?
  /// The database's last commit, where it lacks the anchor.
  let foundCommitNumber: Int64?
  /// The line for people.
  let line: String

  private enum CodingKeys: CodingKey {
    case state, expectedCommitNumber, foundCommitNumber
  }

  init(_ anchor: AnchorState) {
    var numbers: (expected: Int64?, found: Int64?)
    switch anchor {
    case .known: state = "known"
    case .missing(let expected, let found): (state, numbers) = ("missing", (expected, found))
    case .unreadable: state = "unreadable"
    }
    (expectedCommitNumber, foundCommitNumber) = numbers
    line = "anchor     \(state): \(anchor)\n"
  }
}
