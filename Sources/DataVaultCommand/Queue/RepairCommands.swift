internal import ArgumentParser
internal import MessagingQueue
internal import SealedVFS
internal import SystemPackage
internal import VaultedDatabase

/// The command `datavault queue verify`.
struct QueueVerifyCommand: AsyncParsableCommand {
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
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let home = try access.home()
    let verification = try await access.withVault("verifying") { vault, line in
      try await MessagingEngine.verify(
        home, vault: vault, checksContents: !quick, progress: { line.show($0) })
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
      return head + "messages   \(messages.messageCount), consistent\n"
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
struct QueueSalvageCommand: AsyncParsableCommand {
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
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let home = try access.home()
    let salvage = try await access.withVault("copying") { vault, line in
      try await MessagingEngine.salvage(
        home, vault: vault, acceptsRollback: acceptsRollback, progress: { line.show($0) })
    }
    let findings = QueueSalvageReport(file: home.databasePath.string, salvage)
    try report.print(findings) { findings.text }
    guard salvage.isComplete || salvage.pages == nil else {
      throw CommandFailure(
        .badData, "some messages of the queue in \(home.path) are lost",
        hint: "the others are in the new queue; the damaged files are at \(salvage.damagedPath)")
    }
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
