internal import ArgumentParser
internal import CommandInterface

/// The program `datavaultd`: its root command and its main function.
@main
struct Program: CommandProgram {
  static let configuration = CommandConfiguration(
    commandName: "datavaultd", abstract: "Serve encrypted messages to stock clients.",
    discussion: ExitStatus.listing, version: "0.1.0")

  static func main() async { await runCommandLine() }

  static func repeatableOptions(of command: String?) -> Set<Substring> { [] }
}
