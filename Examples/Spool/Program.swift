internal import ArgumentParser
internal import Glibc
internal import Logging

/// A spool daemon: it accepts messages on a Unix socket, stores them encrypted, and runs a command
/// for each.
///
/// Only `Spool`, `Ingest` and `Workers` use DataVault: see `Examples/README.md`.
@main struct Program {
  static func main() async {
    let options = Options.parseOrExit()
    // With SIGPIPE ignored, a command that does not read its input does not end the daemon.
    signal(SIGPIPE, SIG_IGN)
    LoggingSystem.bootstrap(StreamLogHandler.standardError)
    do {
      try await Spool(options: options, logger: Logger(label: "spoold")).run()
    } catch {
      exit(ExitStatus.report(error))
    }
  }
}
