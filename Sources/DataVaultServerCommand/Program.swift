internal import ArgumentParser
internal import CommandInterface

/// The program `datavaultd`: its root command and its main function.
@main
struct Program: CommandProgram {
  static let configuration = CommandConfiguration(
    commandName: "datavaultd", abstract: "Serve encrypted messages to stock clients.",
    discussion: """
      Examples:
        datavaultd app add shop
        datavaultd grant shop --channel orders --read --write
        datavaultd serve

      \(ExitStatus.listing)
      """,
    version: "0.1.0",
    groupedSubcommands: [
      CommandGroup(name: "Serving", subcommands: [ServeCommand.self]),
      CommandGroup(
        name: "Access",
        subcommands: [
          AppCommand.self, UserCommand.self, GrantCommand.self, TokenCommand.self,
          WebhookCommand.self, ExplainCommand.self,
        ]),
      CommandGroup(name: "Several machines", subcommands: [ClusterCommand.self]),
    ])

  static func main() async { await runCommandLine() }

  static func repeatableOptions(of command: String?) -> Set<Substring> {
    switch command {
    case "serve": ["--listen"]
    case "grant", "token": ["--channel", "--channel-pattern", "--group", "--group-pattern"]
    case "user": ["--role"]
    case "webhook": ["--event"]
    case "cluster": ["--broker"]
    default: []
    }
  }
}
