internal import ArgumentParser
internal import Glibc
internal import Logging

/// `datavault`.
@main
struct Program: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "datavault",
    abstract: "Keeps secrets in vaults and messages in an encrypted queue.",
    discussion: """
      Exit codes: 64 usage; 65 bad data; 66 no such vault, item or database; 69 store unavailable; \
      73 exists already; 74 input or output; 75 busy or backing off, try again; 77 wrong password, locked, or no \
      password source; 78 policy.
      """,
    version: "0.1.0",
    groupedSubcommands: [
      CommandGroup(
        name: "Vaults",
        subcommands: [
          CreateCommand.self, ListCommand.self, StatusCommand.self, UnlockCommand.self,
          LockCommand.self, SecureCommand.self, ChangePasswordCommand.self, PolicyCommand.self,
          DeleteCommand.self, CleanUpFirstRunCommand.self, VerifyCommand.self, DoctorCommand.self,
          ExportCommand.self, ImportCommand.self,
        ]),
      CommandGroup(name: "Keys", subcommands: [SlotsCommand.self, RotateCommand.self]),
      CommandGroup(
        name: "Items",
        subcommands: [
          SetCommand.self, GetCommand.self, NamesCommand.self, RemoveCommand.self,
        ]),
      CommandGroup(name: "Messages", subcommands: [QueueCommand.self]),
      CommandGroup(name: "Files", subcommands: [DatabaseCommand.self]),
    ])

  static func main() async {
    StandardDescriptors.occupy()
    CrashTraces.forbid()
    // A closed pipe is an error of write(2), not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    LoggingSystem.bootstrap { _ in StandardErrorLog() }
    do {
      try Arguments.requireUTF8()
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      MemoryWarning.giveOnce()
    } catch {
      end(with: error)
    }
  }

  private static func end(with error: any Error) -> Never {
    let failure: CommandFailure
    switch exitCode(for: error) {
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
      failure = CommandFailure(
        .usage, message(for: error), hint: "datavault help shows every command")
    default:
      failure = CommandFailure(translating: error)
    }
    MemoryWarning.giveOnce()
    failure.report()
    Glibc.exit(failure.status.rawValue)
  }
}
