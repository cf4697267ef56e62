internal import ArgumentParser
internal import Glibc
internal import MessagingQueue

/// `datavault queue publish CHANNEL`.
struct PublishCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "publish", abstract: "Publish the lines of standard input.",
    discussion: """
      Each line is a message, byte for byte, without its newline; empty lines too. Messages are on \
      the disk after each 1,000 lines, each 1 MiB, and whenever the input pauses. What the options say \
      holds for each message; a line of JSON may say otherwise.
      """)

  @Argument(help: ArgumentHelp("Where to publish.", valueName: "channel"))
  var channel: String

  @Flag(
    name: .customLong("ndjson"),
    help: "Read a JSON object a line, with the message as receive prints it.")
  var isNDJSON = false

  @Flag(
    name: .customLong("json"),
    help: "Report each commit, once it is on the disk, as one line of JSON.")
  var isJSON = false

  @OptionGroup var message: MessageOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try DescriptorRules.checkStandardInputIsFree(credentials.descriptors)
  }

  func run() async throws {
    let prototype = try message.message(to: Channel(channel))
    try prototype.check(EngineConfiguration(), as: "the message")
    let engine = try await EngineAccess(home: try home.home(), credentials: credentials).start()
    var publication = Publication(
      engine: engine, prototype: prototype, reportsCommits: isJSON)
    do {
      try await publication.publish(
        from: STDIN_FILENO, format: isNDJSON ? .ndjson : .lines)
    } catch {
      try? await engine.stop()
      throw publication.account(for: error)
    }
    try await engine.stop()
    if !isJSON { try confirm("published \(publication.messageCount) messages") }
  }
}
