internal import ArgumentParser

/// `datavault queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue", abstract: "Publish and receive messages.",
    subcommands: [
      PublishCommand.self, ReceiveCommand.self, HistoryCommand.self, ChannelsCommand.self,
      StatsCommand.self, RekeyCommand.self, AcceptRollbackCommand.self,
    ])
}
