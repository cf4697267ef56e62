internal import ArgumentParser

/// `datavault policy`.
struct PolicyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy",
    abstract: "Show or set what a vault demands of passwords, and how it protects itself.",
    subcommands: [PolicyShowCommand.self, PolicySetCommand.self])
}
