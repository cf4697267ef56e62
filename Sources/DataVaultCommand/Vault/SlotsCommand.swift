internal import ArgumentParser

/// `datavault slots`.
struct SlotsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slots", abstract: "What opens a vault: a password, recovery codes, key files.",
    discussion: "Each opens the vault alone. The last cannot be removed.",
    subcommands: [SlotsListCommand.self, SlotsAddCommand.self, SlotsRemoveCommand.self])
}
