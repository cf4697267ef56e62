internal import ArgumentParser
internal import MessagingQueue

/// `datavault queue purge CHANNEL`.
struct PurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove the messages of a channel, whoever has not received them.")

  @Argument(help: ArgumentHelp("Whose messages.", valueName: "channel"))
  var channel: String

  @Option(
    name: .customLong("before"),
    help: ArgumentHelp("Keep this message and those after it.", valueName: "timetoken"))
  var before: TimetokenArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let channel = try Channel(channel)
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let count = try await access.run { try await $0.purge(channel, before: before?.timetoken) }
    try confirm("removed \(count) messages")
  }
}

/// `datavault queue compact`.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact", abstract: "Give the space of removed messages back to the file system.",
    discussion: "Others publish and receive meanwhile.")

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = EngineAccess(home: try home.home(), credentials: credentials)
    let byteCount = try await access.run { try await $0.compact() }
    try confirm("gave \(byteCount) bytes back")
  }
}
