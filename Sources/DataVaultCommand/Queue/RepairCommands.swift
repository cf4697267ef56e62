internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import SealedVFS
internal import SystemPackage
internal import VaultedDatabase

/// The command `datavault queue verify`.
struct QueueVerifyCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check the queue for damage.",
    discussion: """
      The command reads every page and the log, as 'datavault database verify' does. It compares \
      the queue with the commit that the vault has recorded, and checks every row against the \
      rules of the queue. It changes nothing, except that it completes an interrupted 'queue \
      salvage'. It fails with 65 if it finds an error.

      It fails with 75 while another process has the queue open: stop that process first. Until \
      the command ends, no other process can open the queue.
      """)

  @Flag(help: "Omit SQLite's check of the contents.") var quick = false
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home()
    let verification = try await withVault("verifying") { vault, line in
      try await MessagingEngine.verify(
        home, vault: vault, checksContents: !quick, progress: { line.show($0) })
    }
    if let damagedPath = verification.finishedSalvage {
      StandardError.warn(
        "completed an interrupted salvage; messages can be missing: the damaged files are at "
          + "\(damagedPath)")
    }
    let findings = QueueVerificationReport(file: home.databasePath.string, verification)
    try report.print(findings) { findings.text(isRolledBack: verification.isRolledBack) }
    guard !verification.isRolledBack else {
      throw CommandFailure(
        .badData, "the queue in \(home.path) is an older copy, or has lost its last commits",
        hint:
          "restore the newest copy with its -wal file; to accept this copy without the missing "
          + "messages, run datavault queue accept-rollback")
    }
    guard verification.isClean else {
      throw CommandFailure(
        .badData, "the queue in \(home.path) is damaged",
        hint:
          "copy the files first; datavault queue salvage then rebuilds the queue from its intact "
          + "messages")
    }
  }
}

/// The report of `queue verify`.
struct QueueVerificationReport: Encodable {
  let isClean: Bool
  let pages: VerificationOutput
  let anchor: AnchorReport
  let messages: MessageVerification?

  init(file: String, _ verification: QueueVerification) {
    isClean = verification.isClean
    pages = VerificationOutput(file: file, verification.pages)
    anchor = AnchorReport(verification.anchor)
    messages = verification.messages
  }

  func text(isRolledBack: Bool) -> String {
    let head = (isRolledBack ? pages.text(verdict: "rolled back") : pages.text) + anchor.line
    guard let messages else {
      return head + "messages   not checked, because of the damaged pages\n"
    }
    guard !messages.isClean else {
      let note = messages.isOfOlderVersion ? "; the next start of an engine updates the schema" : ""
      return head + "messages   \(messages.messageCount), consistent\(note)\n"
    }
    let faults = messages.faults.flatMap { fault in
      let rest = fault.count - fault.locations.count
      return fault.locations.map { "messages   \(fault.rule): \($0.onOneLine)" }
        + (rest > 0 ? ["messages   \(fault.rule): \(rest) more"] : [])
    }
    return head + faults.map { "\($0)\n" }.joined()
  }
}

/// The command `datavault queue salvage`.
struct QueueSalvageCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract:
      "Rebuild a damaged queue from its intact messages.",
    discussion: """
      The command moves the damaged files to another name in the home and puts the rebuilt queue \
      in their place. It reports the losses of each table and channel, and fails with 65 if \
      something was lost. It refuses a queue that is an older copy, or that has lost its last \
      commits (65), unless --accept-rollback is given.

      It fails with 75 while another process has the queue open: stop that process first. Until \
      the command ends, no other process can open the queue.
      """)

  @Flag(
    name: .customLong("accept-rollback"),
    help: "Accept a queue that is older than the vault's record.")
  var acceptsRollback = false

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home()
    let salvage = try await withVault("copying") { vault, line in
      try await MessagingEngine.salvage(
        home, vault: vault, acceptsRollback: acceptsRollback, progress: { line.show($0) })
    }
    let findings = QueueSalvageReport(file: home.databasePath.string, salvage)
    try report.print(findings) { findings.text }
    guard !salvage.isComplete else { return }
    throw CommandFailure(
      .badData,
      salvage.pages == nil
        ? "what the interrupted salvage of the queue in \(home.path) has lost is not known"
        : "some messages of the queue in \(home.path) are lost",
      hint: "the others are in the new queue; the damaged files are at \(salvage.damagedPath)")
  }
}

/// The report of `queue salvage`.
struct QueueSalvageReport: Encodable {
  let damagedFile: String
  let isComplete: Bool
  /// Whether the command only completed an interrupted salvage.
  let finishedEarlier: Bool
  let pages: SalvageOutput?
  let anchor: AnchorReport?
  let messages: MessageRepairReport?

  init(file: String, _ salvage: QueueSalvage) {
    let damagedFile = salvage.damagedPath.string
    self.damagedFile = damagedFile
    isComplete = salvage.isComplete
    finishedEarlier = salvage.pages == nil
    pages = salvage.pages.map { SalvageOutput(file: damagedFile, newFile: file, $0) }
    anchor = salvage.anchor.map { AnchorReport($0) }
    messages = salvage.messages
  }

  var text: String {
    let end = "the damaged files are at \(damagedFile.onOneLine)\n"
    guard let pages, let messages else {
      return "completed an interrupted salvage\n" + end
    }
    let channels = table(
      ["CHANNEL", "MESSAGES", "LOST"],
      messages.channels.map {
        [$0.channel, "\($0.messageCount)", $0.lostMessageCount.map(String.init) ?? "unknown"]
      })
    return pages.text + (anchor?.line ?? "") + channels
      + Self.remarks(messages).map { "\($0)\n" }.joined() + end
  }

  private static func remarks(_ messages: MessageRepairReport) -> [String] {
    let counts = [
      (messages.unreadableMessageCount, "unreadable messages were omitted"),
      (messages.orphanedRowCount, "rows that referred to lost rows were omitted"),
      (messages.redeliveredCount, "messages can be delivered again: their delivery state is lost"),
      (
        messages.correctedRowCount,
        "rows had values that no engine writes, and were corrected or left out"
      ),
    ]
    var remarks = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    remarks += messages.removedTriggers.map {
      "left out: the trigger \($0.onOneLine) on a table of the engine"
    }
    if messages.rebuiltEngineRow {
      remarks.append("the engine's state was rebuilt from the messages")
    }
    return remarks + messages.rebuiltTables.map { "lost and created again: table \($0)" }
  }
}

/// The command `datavault queue accept-rollback`.
struct AcceptRollbackCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "accept-rollback",
    abstract: "Accept an older copy of the queue. Newer messages are lost.",
    discussion: """
      The vault regularly records the latest commit of the queue. A queue that lacks that commit \
      is refused (65): it is an older copy, or has lost its log. This command accepts it. Messages \
      that were published later are lost, and messages that were acknowledged later can be \
      delivered again.
      """)

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try confirmation.require("go on without the messages that this copy of the queue lacks")
    let vault = try await open(.messaging)
    guard
      let rollback = try await MessagingEngine.acceptRollback(home(), vault: vault)
    else {
      return try confirm("the queue is not an older copy: there is nothing to accept")
    }
    if rollback.discardedLogFrameCount > 0 {
      StandardError.warn(
        "the last \(rollback.discardedLogFrameCount) frames of the queue's log were torn or damaged, and "
          + "are left out: messages can be missing")
    }
    try confirm(
      "accepted the queue at commit \(rollback.foundCommitNumber); "
        + "the vault had recorded commit \(rollback.expectedCommitNumber)")
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
