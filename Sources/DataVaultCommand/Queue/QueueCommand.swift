internal import ArgumentParser

/// The command `datavault queue`.
struct QueueCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "queue", abstract: "Publish, receive and manage messages.",
    discussion: """
      Examples:
        echo hello | datavault queue publish greetings
        datavault queue receive greetings
        datavault queue stats
      """,
    groupedSubcommands: [
      CommandGroup(
        name: "Send and receive",
        subcommands: [
          PublishCommand.self, ReceiveCommand.self, AckCommand.self, ReleaseCommand.self,
          RejectCommand.self, ExtendCommand.self, HistoryCommand.self,
        ]),
      CommandGroup(
        name: "Inspect",
        subcommands: [
          ChannelsCommand.self, StatsCommand.self, PeekCommand.self, ShowCommand.self,
          DeadLettersCommand.self,
        ]),
      CommandGroup(
        name: "Administer",
        subcommands: [
          ConsumersCommand.self, RetentionCommand.self, LimitCommand.self, CancelCommand.self,
          RedriveCommand.self, PurgeCommand.self, CompactCommand.self, RekeyCommand.self,
        ]),
      CommandGroup(
        name: "Back up and repair",
        subcommands: [
          QueueExportCommand.self, QueueImportCommand.self, QueueVerifyCommand.self,
          QueueSalvageCommand.self, AcceptRollbackCommand.self,
        ]),
    ])
}
