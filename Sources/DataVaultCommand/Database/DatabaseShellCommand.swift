internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import Glibc
internal import MessagingQueue
internal import VaultedDatabase

/// The command `datavault database shell`.
struct DatabaseShellCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "shell", abstract: "Read the queue's database with SQL, in the sqlite3 program.",
    discussion: """
      Examples:
        datavault database shell
        echo 'SELECT count(*) FROM message;' | datavault database shell

      The command starts the distribution's 'sqlite3' with the extension 'libsealedsqlite.so'. The \
      database is read-only. The shell gets the key through a pipe. Statements come from the \
      terminal or from standard input, and the shell does not record them in a history file. \
      Engines can run at the same time. Until the shell ends, 'secure', 'queue rekey' and 'queue \
      salvage' fail with 75.

      Shell commands such as .dump, .backup and VACUUM INTO can write the messages in plaintext.

      The exit code is that of 'sqlite3': 1 after an error in a statement.
      """)

  @Option(
    name: .customLong("extension"),
    help: ArgumentHelp(
      "The extension libsealedsqlite.so. Default: the one of this installation.",
      valueName: "file"), completion: .file())
  var library: String?
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    // The shell reads its statements there.
    try SecretRules.checkStandardInputIsFree(credentials.sources)
  }

  func run() async throws {
    // Before the command asks for a password.
    let shell = try SQLiteShell(library: library)
    let status = try await status(of: shell)
    if status != 0 { throw ExitCode(status) }
  }

  /// Runs the shell on the queue's database, which is closed on return.
  private func status(of shell: SQLiteShell) async throws -> Int32 {
    let database = try await withVault("opening") { vault, _ in
      let database = try await DatabaseCoordinator(home: home()).hold(
        vault, anchorStorage: EngineAnchorStorage())
      await vault.lock()
      return database
    }
    return try withExtendedLifetime(database) { try shell.run(on: database) }
  }
}
