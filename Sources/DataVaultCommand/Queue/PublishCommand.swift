internal import ArgumentParser
internal import Glibc
internal import MessagingQueue

/// `datavault queue publish CHANNEL`.
struct PublishCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "publish", abstract: "Publish the lines of standard input.",
    discussion: """
      Each line is a message, byte for byte, without its newline; empty lines too. Messages are on \
      the disk after each 1,000 lines, each 1 MiB, and whenever the input pauses.
      """)

  @Argument(help: ArgumentHelp("Where to publish.", valueName: "channel"))
  var channel: String

  @Flag(
    name: .customLong("ndjson"),
    help: "Read a JSON object a line, with its bytes in payload or payloadBase64.")
  var isNDJSON = false

  @Flag(
    name: .customLong("json"),
    help: "Report each commit, once it is on the disk, as one line of JSON.")
  var isJSON = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try DescriptorRules.checkStandardInputIsFree(credentials.descriptors)
  }

  func run() async throws {
    let channel = try Channel(channel)
    let engine = try await EngineAccess(home: try home.home(), credentials: credentials).start()
    var publication = Publication(engine: engine, channel: channel, reportsCommits: isJSON)
    do {
      try await publication.publish(
        from: STDIN_FILENO, format: isNDJSON ? .ndjson : .lines,
        maximumPayloadByteCount: engine.configuration.maximumPayloadByteCount)
    } catch {
      try? await engine.stop()
      throw publication.account(for: error)
    }
    try await engine.stop()
    if !isJSON { try confirm("published \(publication.messageCount) messages") }
  }
}
