internal import ArgumentParser

/// `datavault queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue", abstract: "Publish and receive messages.",
    subcommands: [
      PublishCommand.self, ReceiveCommand.self, AckCommand.self, ReleaseCommand.self,
      RejectCommand.self, ExtendCommand.self, HistoryCommand.self, ChannelsCommand.self,
      StatsCommand.self, ConsumersCommand.self, RetentionCommand.self, DeadLettersCommand.self,
      RedriveCommand.self, PurgeCommand.self, CompactCommand.self, QueueVerifyCommand.self,
      QueueSalvageCommand.self, QueueExportCommand.self, QueueImportCommand.self, RekeyCommand.self,
      AcceptRollbackCommand.self,
    ])
}
