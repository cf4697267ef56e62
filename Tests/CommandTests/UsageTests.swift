import Foundation
import TestSupport
import Testing

@Suite struct UsageTests {
  @Test(arguments: [
    #"exec "$0" list --home "$(printf '/nowhere\377')" 2>/dev/null"#,
    #"DATAVAULT_HOME="$(printf '/nowhere\377')" exec "$0" list 2>/dev/null"#,
  ])
  func `an argument or a home that is not UTF-8 is refused with 64`(script: String) throws {
    #expect(try Program.run("/bin/sh", ["-c", script, Program.datavault]).status == 64)
  }

  @Test(arguments: [
    (["frobnicate"], "unknown command 'frobnicate'", "run 'datavault help'"),
    (["unlok"], "unknown command 'unlok'", "did you mean 'unlock'"),
    (["queue", "pulish", "c"], "unknown command 'pulish'", "did you mean 'publish'"),
    (["queue", "consumers", "ad", "c"], "unknown command 'ad'", "did you mean 'add'"),
    (["--home", "/nowhere", "lst"], "unknown command 'lst'", "'list'"),
  ])
  func `an unknown command is named, with the nearest names`(
    arguments: [String], message: String, hint: String
  ) throws {
    try Tool.run(arguments).expect(64, says: message, hint)
  }

  @Test(arguments: [
    (["unlock", "v", "--for", "0s"], "run 'datavault help unlock'"),
    (["queue", "receive", "c", "--max", "many"], "run 'datavault help queue receive'"),
    (["queue", "consumers", "c", "--most"], "run 'datavault help queue consumers'"),
    (["--no-such-option"], "run 'datavault help' to list the commands"),
  ])
  func `the hint of a wrong option leads to the help of its command`(
    arguments: [String], hint: String
  ) throws {
    let outcome = try Tool.run(arguments).expect(64)
    #expect(outcome.errors.hasSuffix("hint: \(hint)\n"), "\(outcome.errors)")
  }

  private struct Help: Decodable {
    struct Command: Decodable {
      let commandName: String
      let subcommands: [Command]?
      let arguments: [Argument]?
    }
    struct Argument: Decodable {
      struct Name: Decodable { let name: String }
      let kind: String
      let isRepeating: Bool
      let names: [Name]?
    }
    let command: Command
  }

  /// Each option of each command, and whether the command takes it several times.
  private func options() throws -> [(command: [String], name: String, isRepeating: Bool)] {
    func options(
      _ command: Help.Command, _ path: [String]
    ) -> [(command: [String], name: String, isRepeating: Bool)] {
      (command.arguments ?? []).filter { $0.kind != "positional" }.flatMap { argument in
        (argument.names ?? []).filter { $0.name.count > 1 }
          .map { (path, "--\($0.name)", argument.isRepeating) }
      } + (command.subcommands ?? []).flatMap { options($0, path + [$0.commandName]) }
    }
    let dump = try Tool.run(["--experimental-dump-help"]).output
    return options(try JSONDecoder().decode(Help.self, from: Data(dump)).command, [])
  }

  @Test func `an option is refused if it is given twice, unless the help says that it repeats`()
    throws
  {
    let options = try options()
    #expect(
      options.contains { $0.name == "--password-file" } && options.contains(where: \.isRepeating))
    for (command, name, isRepeating) in options where !["--help", "--version"].contains(name) {
      let outcome = try Tool.run(command + [name, "a", name, "b", "--no-such-option"]).expect(64)
      #expect(
        outcome.errors.hasPrefix("datavault: \(name) is given twice\n") == !isRepeating,
        "\(command) \(name): \(outcome.errors)")
    }
    let flags = try Tool.run(["policy", "set", "v", "--digit", "--no-digit"]).expect(64)
    #expect(flags.errors.hasPrefix("datavault: --digit and --no-digit are both given\n"))
  }

  @Test(arguments: [["status", "v\u{1B}[2J"], ["slots", "list", "v\u{1B}[2J"]])
  func `an invalid name in an error is escaped like any other text`(arguments: [String]) throws {
    let outcome = try Tool.run(arguments)
    #expect(outcome.errors.hasPrefix(#"datavault: invalid vault name: 'v\u{1b}[2J'"#))
  }

  @Test func `--home and --store are accepted before the command`() throws {
    let home = try TestHome.fresh()
    let password = home.passwordFile
    try Tool.run(["--home", home.path, "create", "v", "--new-password-file", password]).expect(0)
    #expect(try Tool.run(["--store", "file", "--home=\(home.path)", "list"]).text == "v\n")
    try Tool.run(
      ["--home", home.path, "set", "v", "--password-file", password, "--", "-name"],
      input: Array("value".utf8)
    ).expect(0)
    #expect(try Tool.run(["--home", home.path]).status == 64)
    #expect(try Tool.run(["--home", home.path, "help"]).status == 0)
  }

  @Test(arguments: [
    (["--help"], "clean-up-first-run"), (["help"], "USAGE: datavault"),
    (["help", "queue", "publish"], "USAGE: datavault"), (["help", "help"], "USAGE: datavault"),
  ])
  func `help goes to standard output and succeeds`(arguments: [String], text: String) throws {
    #expect(try Tool.run(arguments).expect(0, prints: text).errors.isEmpty)
  }

  @Test(arguments: [
    ["no-such-command"],
    ["help", "no-such-command"],
    ["help", "queue", "no-such-command"],
    ["queue", "publish"],
    ["queue", "receive", "c", "--lease", "30"],
    ["queue", "receive", "c", "--lease", "0s"],
    ["queue", "receive", "c", "--max", "0"],
    ["queue", "receive", "c", "--max", "many"],
    ["queue", "stats", "--password-file", "a", "--password-fd", "3"],
    ["queue", "stats", "--salt-file", "a", "--salt-fd", "3"],
    ["queue", "stats", "--password-fd", "3", "--salt-fd", "3"],
    ["change-password", "v", "--password-fd", "3", "--new-password-fd", "3"],
    ["queue", "publish", "c", "--password-fd", "0"],
    ["set", "v", "n", "--password-fd", "0"],
    ["queue", "publish", "a\nb", "--home", "/nowhere"],
    ["status", "Not a vault", "--home", "/nowhere"],
    ["status", "../messaging", "--home", "/nowhere"],
    ["slots", "add", "v", "n"],
    ["slots", "add", "v", "n", "--recovery-code", "--new-slot-key-file", "f"],
    ["slots", "add", "v", "n", "--new-slot-key-fd", "3", "--password-fd", "3"],
    ["get", "v", "n", "--recovery-code-file", "f", "--unlock-key-file", "f"],
    ["get", "v", "n", "--recovery-code-file", "f", "--password-file", "f"],
    ["get", "v", "n", "--unlock-key-file", "f", "--salt-file", "f"],
    ["rotate", "v", "--unlock-key-fd", "3", "--recovery-code-fd", "3"],
    ["set", "v", "n", "--unlock-key-fd", "0"],
    ["slots", "remove", "v"],
  ])
  func `a wrong command line ends with 64 and says so on standard error`(
    arguments: [String]
  ) throws {
    let outcome = try Tool.run(arguments).expect(64)
    #expect(outcome.errors.hasPrefix("datavault: "))
    #expect(outcome.errors.contains("\nhint: "))
    #expect(outcome.output.isEmpty)
  }

  @Test(arguments: [
    (["DATAVAULT_HOME": "/a", "STATE_DIRECTORY": "/b", "XDG_DATA_HOME": "/c"], "/a"),
    (["STATE_DIRECTORY": "/b:/d", "XDG_DATA_HOME": "/c"], "/b"), (["STATE_DIRECTORY": ":/b"], "/b"),
    (["XDG_DATA_HOME": "/c", "HOME": "/h"], "/c/datavault"),
    (["XDG_DATA_HOME": "relative", "HOME": "/h"], "/h/.local/share/datavault"),
    (["DATAVAULT_HOME": "", "HOME": "/h"], "/h/.local/share/datavault"),
  ])
  func `the home comes from the environment variables in the documented order`(
    environment: [String: String], home: String
  ) throws {
    try Tool.run(["status", "absent"], environment: environment)
      .expect(66, says: "(\(home)/vaults/absent.vault)")
  }
}
