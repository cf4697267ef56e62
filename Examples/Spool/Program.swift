internal import ArgumentParser
internal import Glibc
internal import Logging

/// A spool: takes messages on a Unix socket, keeps them encrypted, and runs a command with each.
///
/// `Spool`, `Ingest` and `Workers` are what links DataVault; `Examples/README.md`.
@main struct Program {
  static func main() async {
    let options = Options.parseOrExit()
    // A command that does not read its input is told by its exit code.
    signal(SIGPIPE, SIG_IGN)
    LoggingSystem.bootstrap(StreamLogHandler.standardError)
    do {
      try await Spool(options: options, logger: Logger(label: "spoold")).run()
    } catch {
      exit(ExitStatus.report(error))
    }
  }
}
