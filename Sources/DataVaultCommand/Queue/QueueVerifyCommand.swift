internal import ArgumentParser
internal import MessagingQueue
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
  let pages: VerificationReport
  let anchor: AnchorReport
  let messages: MessageVerification?
  private let isRolledBack: Bool

  private enum CodingKeys: CodingKey {
    case isClean, pages, anchor, messages
  }

  init(file: String, _ verification: QueueVerification) {
    isClean = verification.isClean
    pages = VerificationReport(file: file, verification.pages)
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
