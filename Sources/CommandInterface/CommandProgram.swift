package import ArgumentParser
internal import Glibc
internal import Logging

/// A program of several commands: its root command.
///
/// Its main function must call ``runCommandLine()``: the parser's own one has other messages and exit codes.
package protocol CommandProgram: AsyncParsableCommand {
  /// The options that a command accepts several times, with their hyphens.
  ///
  /// - Parameter command: the first word of the command's name; nil if the line has none.
  static func repeatableOptions(of command: String?) -> Set<Substring>
}

extension CommandProgram {
  /// The program's name, as its messages and hints show it.
  static var name: String { configuration.commandName ?? "\(Self.self)" }

  /// Runs the command that the command line names.
  ///
  /// An error ends the process: its message is written to standard error, and its exit code is
  /// that of ``ExitStatus``.
  package static func runCommandLine() async {
    StandardDescriptors.occupy()
    CrashTraces.forbid()
    // With SIGPIPE ignored, a write to a closed pipe fails with an error and the process continues.
    signal(SIGPIPE, SIG_IGN)
    StandardError.programName = name
    LoggingSystem.bootstrap { _ in StandardErrorLog() }
    let arguments = Arguments(of: Self.self)
    let start = ContinuousClock.now
    if Completion.isRequested(by: arguments.words) { Completion.limitTime() }
    do {
      try arguments.requireUTF8()
      if arguments.words.first == "help", let failure = arguments.rest.unknownCommand {
        throw failure
      }
      try arguments.requireSingleOptions()
      var command = try await command(for: arguments)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      MemoryWarning.giveOnce()
      Detail.say("finished in \(PeopleText.seconds(since: start))")
    } catch {
      end(with: error, arguments)
    }
  }

  /// The command that the arguments name.
  ///
  /// It is parsed alone first, because the parser looks at each command below its root. A request for
  /// help names the whole command, so it needs the program as root.
  private static func command(for arguments: Arguments) async throws -> any ParsableCommand {
    let (nameCount, named) = arguments.command
    if named.configuration.subcommands.isEmpty, let named = named as? any AsyncParsableCommand.Type
    {
      do {
        let command = try await named.asyncParseAsRoot(Array(arguments.words.dropFirst(nameCount)))
        if type(of: command) == named { return command }
      } catch  where named.exitCode(for: error) == .validationFailure {
        throw usageFailure(named.message(for: error), arguments)
      } catch {}
    }
    return try await asyncParseAsRoot(arguments.words)
  }

  private static func usageFailure(_ message: String, _ arguments: Arguments) -> CommandFailure {
    CommandFailure(.usage, message, hint: arguments.helpHint)
  }

  private static func end(with error: any Error, _ arguments: Arguments) -> Never {
    // Of the program that the command has run.
    if let exitCode = error as? ExitCode { Glibc.exit(exitCode.rawValue) }
    let failure: CommandFailure
    let status = exitCode(for: error)
    if status != .success, Completion.isRequested(by: arguments.words) {
      Glibc.exit(status.rawValue)
    }
    switch status {
    case .success:
      // A request for help, or for the version.
      do {
        try OutputDescriptor.standardOutput.writeAll(
          Array("\(message(for: error))\n".onItsLines.utf8))
        Glibc.exit(0)
      } catch {
        failure = error
      }
    case .validationFailure:
      failure = arguments.unknownCommand ?? usageFailure(message(for: error), arguments)
    default:
      failure = CommandFailure(translating: error)
    }
    MemoryWarning.giveOnce()
    failure.report()
    Glibc.exit(failure.status.rawValue)
  }
}
