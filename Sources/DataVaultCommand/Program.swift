internal import ArgumentParser
internal import CommandInterface

/// The program `datavault`: its root command and its main function.
@main
struct Program: CommandProgram {
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

      \(ExitStatus.listing)
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

  static func main() async { await runCommandLine() }

  static func repeatableOptions(of command: String?) -> Set<Substring> {
    let options: Set<Substring> = ["--channel", "--drop", "--header"]
    guard command == "rotate" else { return options }
    return options.union([
      "--recovery-code-file", "--recovery-code-fd", "--recovery-code-prompt", "--unlock-key-file",
      "--unlock-key-fd",
    ])
  }
}
