internal import ArgumentParser
internal import Glibc
internal import Logging

/// The program `datavault`: its root command and its main function.
@main
struct Program: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "datavault",
    abstract: "Keep secrets in encrypted vaults and messages in an encrypted queue.",
    discussion: """
      Examples:
        datavault secure
        datavault set messaging api-token < token.txt
        datavault get messaging api-token
        echo hello | datavault queue publish greetings
        datavault queue receive greetings

      Exit codes:
        \(ExitStatus.allCases.map { "\($0.rawValue)  \($0.meaning)" }.joined(separator: "\n  "))
      """,
    version: "0.1.0",
    groupedSubcommands: [
      CommandGroup(
        name: "Getting started",
        subcommands: [
          SecureCommand.self, UnlockCommand.self, LockCommand.self, DoctorCommand.self,
        ]),
      CommandGroup(
        name: "Vaults",
        subcommands: [
          CreateCommand.self, ListCommand.self, StatusCommand.self, VerifyCommand.self,
          ExportCommand.self, ImportCommand.self, DeleteCommand.self, CleanUpFirstRunCommand.self,
        ]),
      CommandGroup(
        name: "Passwords and keys",
        subcommands: [
          ChangePasswordCommand.self, PolicyCommand.self, SlotsCommand.self, RotateCommand.self,
          ForgetCommand.self,
        ]),
      CommandGroup(
        name: "Items",
        subcommands: [
          SetCommand.self, GetCommand.self, ItemsCommand.self, UnsetCommand.self,
          EncryptCommand.self, DecryptCommand.self,
        ]),
      CommandGroup(name: "Queue", subcommands: [QueueCommand.self]),
      CommandGroup(
        name: "Backups",
        subcommands: [BackupCommand.self, VerifyBackupCommand.self, RestoreCommand.self]),
      CommandGroup(name: "Databases", subcommands: [DatabaseCommand.self]),
    ])

  static func main() async {
    StandardDescriptors.occupy()
    CrashTraces.forbid()
    // With SIGPIPE ignored, a write to a closed pipe fails with an error and the process continues.
    signal(SIGPIPE, SIG_IGN)
    LoggingSystem.bootstrap { _ in StandardErrorLog() }
    let arguments = Arguments.withSharedOptionsLast(Array(CommandLine.arguments.dropFirst()))
    let start = ContinuousClock.now
    if Completion.isRequested(by: arguments) { Completion.limitTime() }
    do {
      try Arguments.requireUTF8()
      if arguments.first == "help",
        let failure = Arguments.unknownCommand(in: Array(arguments.dropFirst()))
      {
        throw failure
      }
      try Arguments.requireSingleOptions(arguments)
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
  private static func command(for arguments: [String]) async throws -> any ParsableCommand {
    let (nameCount, named) = Arguments.command(of: arguments)
    if named.configuration.subcommands.isEmpty, let named = named as? any AsyncParsableCommand.Type
    {
      do {
        let command = try await named.asyncParseAsRoot(Array(arguments.dropFirst(nameCount)))
        if type(of: command) == named { return command }
      } catch  where named.exitCode(for: error) == .validationFailure {
        throw usageFailure(named.message(for: error), arguments)
      } catch {}
    }
    return try await asyncParseAsRoot(arguments)
  }

  private static func usageFailure(_ message: String, _ arguments: [String]) -> CommandFailure {
    CommandFailure(.usage, message, hint: Arguments.helpHint(for: arguments))
  }

  private static func end(with error: any Error, _ arguments: [String]) -> Never {
    // Of the program that the command has run.
    if let exitCode = error as? ExitCode { Glibc.exit(exitCode.rawValue) }
    let failure: CommandFailure
    let status = exitCode(for: error)
    if status != .success, Completion.isRequested(by: arguments) { Glibc.exit(status.rawValue) }
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
      failure =
        Arguments.unknownCommand(in: arguments)
        ?? usageFailure(message(for: error), arguments)
    default:
      failure = CommandFailure(translating: error)
    }
    MemoryWarning.giveOnce()
    failure.report()
    Glibc.exit(failure.status.rawValue)
  }
}
