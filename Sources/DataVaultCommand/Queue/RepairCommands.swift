internal import ArgumentParser
internal import MessagingQueue
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultedDatabase

/// `datavault queue verify`.
struct QueueVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check pages, log and rows of the messages, and name what is wrong.",
    discussion: """
      Every page and the log are read as by datavault database verify; then the messages are compared with the vault, \
      which knows how far they had come, and each row with the messages' own rules. Nothing is changed. Nobody may have the \
      messages open meanwhile. Ends with 65 when something is wrong.
      """)

  @Flag(help: "Do not have SQLite compare the pages with each other.") var quick = false
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home.home()
    let access = EngineAccess(home: home, credentials: credentials)
    try await access.demandDatabase()
    let vault = try await access.vault()
    let line = ProgressLine("verifying")
    defer { line.clear() }
    let verification = try await MessagingEngine.verify(
      home, vault: vault, checksContents: !quick, progress: { line.show($0) })
    line.clear()
    let findings = QueueVerificationReport(file: home.databasePath.string, verification)
    try report.print(findings) { findings.text }
    guard !verification.isRolledBack else {
      throw CommandFailure(
        .badData, "the messages in \(home.path) are an older copy, or have lost their last commits",
        hint:
          "put the newest copy back with its -wal file; to go on with this one, and without what "
          + "is missing, run datavault queue accept-rollback")
    }
    guard verification.isClean else {
      throw CommandFailure(
        .badData, "the messages in \(home.path) are damaged",
        hint:
          "keep the files as they are, or copy them; datavault queue salvage rescues what is whole")
    }
  }
}

/// The report of `queue verify`.
struct QueueVerificationReport: Encodable {
  let isClean: Bool
  let pages: VerificationOutput
  let anchor: AnchorReport
  let messages: MessageVerification?
  private let isRolledBack: Bool

  private enum CodingKeys: CodingKey {
    case isClean, pages, anchor, messages
  }

  init(file: String, _ verification: QueueVerification) {
    isClean = verification.isClean
    pages = VerificationOutput(file: file, verification.pages)
    anchor = AnchorReport(verification.anchor)
    messages = verification.messages
    isRolledBack = verification.isRolledBack
  }

  var text: String {
    let head = (isRolledBack ? pages.text(verdict: "rolled back") : pages.text) + anchor.line
    guard let messages else { return head + "messages   not checked: the pages come first\n" }
    guard !messages.isClean else {
      return head + "messages   \(messages.messageCount), in agreement with their rules\n"
    }
    let faults = messages.faults.flatMap { fault in
      let rest = fault.count - fault.places.count
      return fault.places.map { "messages   \(fault.rule): \($0.onOneLine)" }
        + (rest > 0 ? ["messages   \(fault.rule): \(rest) more"] : [])
    }
    return head + faults.map { "\($0)\n" }.joined()
  }
}

/// `datavault queue salvage`.
struct QueueSalvageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract:
      "Put a new database with all messages that are still whole in the place of a damaged one.",
    discussion: """
      The damaged files stay in the home under another name, and the daemon starts on the new ones. Reports by table and \
      channel what was lost, and ends with 65 when something was. Nobody may have the messages open meanwhile. Messages \
      that are an older copy, or have lost their last commits, are refused (65) unless --accept-rollback is given.
      """)

  @Flag(
    name: .customLong("accept-rollback"),
    help: "Go on where the messages are behind what the vault knows of.")
  var acceptsRollback = false

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home.home()
    let access = EngineAccess(home: home, credentials: credentials)
    try await access.demandDatabase()
    let vault = try await access.vault()
    let line = ProgressLine("copying")
    defer { line.clear() }
    let salvage = try await MessagingEngine.salvage(
      home, vault: vault, acceptsRollback: acceptsRollback, progress: { line.show($0) })
    line.clear()
    let findings = QueueSalvageReport(file: home.databasePath.string, salvage)
    try report.print(findings) { findings.text }
    guard salvage.isComplete || salvage.pages == nil else {
      throw CommandFailure(
        .badData, "not all messages in \(home.path) could be saved",
        hint: "what could is in their place; the damaged files are at \(salvage.damagedPath)")
    }
  }
}

/// The report of `queue salvage`.
struct QueueSalvageReport: Encodable {
  let damagedFile: String
  let isComplete: Bool
  /// Whether an earlier salvage was finished, and nothing else was done.
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
      return "a salvage that was interrupted is finished\n" + end
    }
    var table = Table(header: ["CHANNEL", "MESSAGES", "LOST"])
    for channel in messages.channels {
      table.append([
        channel.channel, "\(channel.messageCount)",
        channel.lostMessageCount.map(String.init) ?? "unknown",
      ])
    }
    return pages.text + (anchor?.line ?? "") + table.text
      + Self.remarks(messages).map { "\($0)\n" }.joined() + end
  }

  private static func remarks(_ messages: MessageRepairReport) -> [String] {
    var remarks: [String] = []
    if messages.unreadableMessageCount > 0 {
      remarks.append(
        "\(messages.unreadableMessageCount) messages nobody could have read were left out")
    }
    if messages.orphanedRowCount > 0 {
      remarks.append(
        "\(messages.orphanedRowCount) rows referred to what is lost, and were left out")
    }
    if messages.redeliveredCount > 0 {
      remarks.append(
        "\(messages.redeliveredCount) messages may be delivered again: it is lost who had them")
    }
    if messages.rebuiltEngineRow {
      remarks.append("the engine's state was made anew from its messages")
    }
    return remarks + messages.rebuiltTables.map { "lost, and made anew: table \($0)" }
  }
}
