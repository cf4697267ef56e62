internal import ArgumentParser
internal import DataVault
internal import MessagingQueue
internal import VaultedDatabase

/// The command `datavault queue accept-rollback`.
struct AcceptRollbackCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept-rollback",
    abstract: "Accept an older copy of the queue. Newer messages are lost.",
    discussion: """
      The vault regularly records the latest commit of the queue. A queue that lacks that commit \
      is refused (65): it is an older copy, or has lost its log. This command accepts it. Messages \
      that were published later are lost, and messages that were acknowledged later can be \
      delivered again.
      """)

  @OptionGroup var access: AccessOptions

  func run() async throws {
    let vault = try await access.open(.messaging)
    guard
      let rollback = try await MessagingEngine.acceptRollback(access.home(), vault: vault)
    else {
      return try confirm("the queue is not an older copy: there is nothing to accept")
    }
    try confirm(
      "accepted the queue at commit \(rollback.foundCommitNumber); "
        + "the vault had recorded commit \(rollback.expectedCommitNumber)")
  }
}

/// The command `datavault queue rekey`.
struct RekeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Re-encrypt the queue with a new key.",
    discussion: """
      The vault creates and stores the key. The password stays the same. The command fails with \
      75 while another process has the queue open: stop that process first. Until the command \
      ends, no other process can open the queue. If the command is interrupted, the next opening \
      completes the change.
      """)

  @OptionGroup var access: AccessOptions

  func run() async throws {
    let vault = try await access.open(.messaging)
    let line = ProgressLine("re-encrypting")
    defer { line.clear() }
    try await DatabaseCoordinator(home: access.home()).changeKey(
      of: vault, anchorStorage: EngineAnchorStorage()
    ) { line.show($0) }
    try confirm("re-encrypted the queue with a new key")
  }
}

/// The vault's rollback anchor in the reports of `queue verify` and `queue salvage`.
struct AnchorReport: Encodable {
  /// `known`, `missing` or `unreadable`.
  let state: String
  /// The commit of the anchor; only if the database lacks it.
  let expectedCommitNumber: Int64?
  /// The database's last commit; only if the database lacks the anchor.
  let foundCommitNumber: Int64?
  /// The line for people.
  let line: String

  private enum CodingKeys: CodingKey {
    case state, expectedCommitNumber, foundCommitNumber
  }

  init(_ anchor: AnchorState) {
    (state, expectedCommitNumber, foundCommitNumber) =
      switch anchor {
      case .known: ("known", nil, nil)
      case .missing(let expected, let found): ("missing", expected, found)
      case .unreadable: ("unreadable", nil, nil)
      }
    line = "anchor     \(state): \(anchor)\n"
  }
}
