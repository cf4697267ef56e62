internal import ArgumentParser
internal import MessagingQueue
internal import SystemPackage

/// `datavault queue import FILE`.
struct QueueImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Take in messages that queue export has written, and what their consumers have done.",
    discussion: """
      Every line is looked at before anything is changed. Interrupted, the same command goes on; a file that was \
      imported changes nothing.
      """)

  @Argument(help: ArgumentHelp("What queue export has written.", valueName: "file"))
  var file: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try FileAndNewFile.requireName(file, "FILE") }

  func run() async throws {
    // A first start would make a home for a name that was mistyped.
    try MessagingEngine.requireFileToImport(at: FilePath(file))
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let line = ProgressLine("importing")
    defer { line.clear() }
    let result = try await access.runOrMake { engine in
      try await engine.importMessages(from: FilePath(file), progress: { line.show($0) })
    }
    line.clear()
    let findings = ImportFindings(file: file, result)
    if report.isJSON { return try report.print(findings) { "" } }
    if result.wasComplete { return try confirm("\(file) was imported before: nothing was changed") }
    let renumbered =
      result.renumberedCount > 0 ? "; \(result.renumberedCount) got new timetokens" : ""
    try confirm("imported \(result.messageCount) messages\(renumbered)")
  }
}

/// The report of `queue import` as JSON.
private struct ImportFindings: Encodable {
  let file: String
  let messages: Int
  let keptTimetokens: Int
  let newTimetokens: Int
  let resumedAfterLine: Int
  let wasComplete: Bool

  init(file: String, _ report: ImportReport) {
    self.file = file
    messages = report.messageCount
    keptTimetokens = report.keptCount
    newTimetokens = report.renumberedCount
    resumedAfterLine = report.resumedAfterLine
    wasComplete = report.wasComplete
  }
}
