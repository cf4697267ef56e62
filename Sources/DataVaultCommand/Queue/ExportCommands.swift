internal import ArgumentParser
internal import CommandInterface
internal import MessagingQueue
internal import SystemPackage

/// The command `datavault queue export [FILE]`.
struct QueueExportCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract:
      "Export messages and their delivery state as plaintext JSON lines.",
    discussion: """
      Example:
        datavault queue export messages.ndjson

      The file has mode 0600. The command writes FILE.partial and renames it when it is complete. \
      If the command is interrupted, run it again: it continues. Without FILE, the lines go to \
      standard output. To move a queue, first stop the programs that publish and receive.
      """)

  @Argument(help: "The new file. It must not exist.", completion: .file())
  var file: String?

  @Option(
    name: .customLong("channel"),
    help: ArgumentHelp(
      "Export only this channel, which must exist. Can be repeated. Default: all channels.",
      valueName: "channel"),
    completion: Completion.channels)
  var channels: [String] = []

  @Option(help: ArgumentHelp("Start with the message after this one.", valueName: "timetoken"))
  var after: Timetoken?

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard let file else {
      if report.isJSON {
        throw ValidationError("--json needs a FILE: standard output carries the messages")
      }
      return
    }
    try FileAndNewFile.requireNewName(file, "FILE")
  }

  func run() async throws {
    let chosen = try Set(channels.map { name throws(EngineError) in try Channel(name) })
    let selection = MessageSelection(
      channels: chosen.isEmpty ? nil : chosen, after: after)
    let line = ProgressLine("exporting", unit: .messages)
    defer { line.clear() }
    let result = try await runEngine { engine in
      if let file {
        StandardError.warn("\(file) will contain the messages in plaintext")
        return try await engine.exportMessages(
          selection, to: FilePath(file), progress: { line.show($0) })
      }
      let isShown = !OutputDescriptor.standardOutput.isTerminal
      return try await engine.exportMessages(
        selection, progress: { if isShown { line.show($0) } },
        write: { try OutputDescriptor.standardOutput.writeAll($0) })
    }
    if result.databaseChanged {
      StandardError.warn(
        "the queue changed while the export was interrupted: the messages before the interruption "
          + "are in the file as they were then; to have one state, remove the file and export again"
      )
    }
    guard let file else { return }
    line.clear()
    let findings = ExportFindings(file: file, result)
    if report.isJSON { return try report.print(findings) { "" } }
    try confirm("exported \(result.messageCount) messages to \(file)")
  }
}

/// The JSON report of `queue export`.
private struct ExportFindings: Encodable {
  let file: String
  let messages: Int
  let databaseChanged: Bool
  /// How many messages an interrupted attempt had written; absent if there was none.
  let resumedAfter: Int?

  init(file: String, _ report: ExportReport) {
    self.file = file
    messages = report.messageCount
    databaseChanged = report.databaseChanged
    resumedAfter = report.resumedAfter
  }
}

/// The command `datavault queue import FILE`.
struct QueueImportCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import messages and their delivery state from an export.",
    discussion: """
      Example:
        datavault queue import messages.ndjson

      The command checks every line before it changes anything. If it is interrupted, run it \
      again: it continues. Importing the same file again changes nothing.
      """)

  @Argument(help: "A file written by 'queue export'.", completion: .file())
  var file: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try FileAndNewFile.requireName(file, "FILE") }

  func run() async throws {
    // Checked before the engine starts: it would create a home even if the file does not exist.
    try MessagingEngine.requireFileToImport(at: FilePath(file))
    let line = ProgressLine("importing", unit: .bytes)
    defer { line.clear() }
    let result = try await runOrMakeEngine { engine in
      try await engine.importMessages(from: FilePath(file), progress: { line.show($0) })
    }
    line.clear()
    let findings = ImportFindings(file: file, result)
    if report.isJSON { return try report.print(findings) { "" } }
    if result.wasAlreadyImported {
      return try confirm("\(file) was already imported: nothing was changed")
    }
    let renumbered =
      result.renumberedCount > 0 ? "; \(result.renumberedCount) got new timetokens" : ""
    try confirm("imported \(result.messageCount) messages\(renumbered)")
  }
}

/// The JSON report of `queue import`.
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
