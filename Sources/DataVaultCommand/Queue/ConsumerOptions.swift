internal import ArgumentParser
internal import MessagingQueue

/// Whose view of a channel a command means.
struct ConsumerOptions: ParsableArguments {
  @Option(
    name: .customLong("consumer"),
    help: ArgumentHelp(
      "Read as this consumer: each name gets every message once. Default: default.",
      valueName: "name"))
  var name: String?

  func consumer() throws -> Consumer {
    try name.map(Consumer.init) ?? .default
  }
}
