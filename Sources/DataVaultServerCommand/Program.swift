internal import ArgumentParser

/// The program `datavaultd`: its root command and its main function.
@main
struct Program: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "datavaultd", abstract: "Serve encrypted messages to stock clients.",
    version: "0.1.0")
}
