internal import ArgumentParser
internal import MessagingQueue
internal import SystemPackage

/// `datavault queue export [FILE]`.
struct QueueExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract:
      "Write messages, and what their consumers have done with them, as plaintext JSON lines.",
    discussion: """
      The file is mode 0600, written as FILE.partial, and gets its name when it is whole; interrupted, the same command \
      goes on. Without FILE the lines go to standard output. To move a queue, stop what publishes and receives first.
      """)

  @Argument(
    help: ArgumentHelp("Where the lines are to lie; nothing may be there.", valueName: "file"))
  var file: String?

  @Option(
    name: .customLong("channel"),
    help: ArgumentHelp(
      "Export the messages of this channel, and of others that are named so; of all by default.",
      valueName: "channel"))
  var channels: [String] = []

  @Option(
    name: .customLong("after"),
    help: ArgumentHelp("Begin with the message after this one.", valueName: "timetoken"))
  var after: TimetokenArgument?

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard let file else {
      if report.isJSON {
        throw ValidationError("--json needs a FILE: standard output has the lines")
      }
      return
    }
    try FileAndNewFile.requireName(file, "FILE")
  }

  func run() async throws {
    let chosen = try Set(channels.map { name throws(EngineError) in try Channel(name) })
    let selection = MessageSelection(
      channels: chosen.isEmpty ? nil : chosen, after: after?.timetoken)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let line = ProgressLine("exporting")
    defer { line.clear() }
    let result = try await access.run { engine in
      if let file {
        StandardError.warn("\(file) will hold the messages in plaintext")
        return try await engine.exportMessages(
          selection, to: FilePath(file), progress: { line.show($0) })
      }
      return try await engine.exportMessages(
        selection, write: { try OutputDescriptor.standardOutput.writeAll($0) })
    }
    if result.databaseChanged {
      StandardError.warn(
        "the messages changed while the export was interrupted: what was acknowledged meanwhile can "
          + "stand in it as not acknowledged")
    }
    guard let file else { return }
    line.clear()
    let findings = ExportFindings(file: file, result)
    if report.isJSON { return try report.print(findings) { "" } }
    try confirm("exported \(result.messageCount) messages to \(file)")
  }
}

/// The report of `queue export` as JSON.
private struct ExportFindings: Encodable {
  let file: String
  let messages: Int
  let databaseChanged: Bool
  /// Messages that an interrupted attempt had written; absent where there was none.
  let resumedAfter: Int?

  init(file: String, _ report: ExportReport) {
    self.file = file
    messages = report.messageCount
    databaseChanged = report.databaseChanged
    resumedAfter = report.resumedAfter
  }
}

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
    if result.wasAlreadyImported {
      return try confirm("\(file) was imported before: nothing was changed")
    }
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
  let wasAlreadyImported: Bool

  init(file: String, _ report: ImportReport) {
    self.file = file
    messages = report.messageCount
    keptTimetokens = report.keptCount
    newTimetokens = report.renumberedCount
    resumedAfterLine = report.resumedAfterLine
    wasAlreadyImported = report.wasAlreadyImported
  }
}
