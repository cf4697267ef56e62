import Foundation
import Testing

@Suite struct UsageTests {
  @Test(arguments: [
    #"exec "$0" list --home "$(printf '/nowhere\377')" 2>/dev/null"#,
    #"DATAVAULT_HOME="$(printf '/nowhere\377')" exec "$0" list 2>/dev/null"#,
  ])
  func `an argument or a home that is not UTF-8 is refused with 64`(script: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script, Tool.path]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 64)
  }

  @Test func `help goes to standard output and succeeds`() throws {
    let outcome = try Tool.run(["--help"])
    #expect(outcome.status == 0)
    #expect(outcome.text.contains("clean-up-first-run"))
    #expect(outcome.errors.isEmpty)
  }

  @Test(arguments: [
    ["no-such-command"],
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
  ])
  func `a wrong command line ends with 64 and says so on standard error`(
    arguments: [String]
  ) throws {
    let outcome = try Tool.run(arguments)
    #expect(outcome.status == 64)
    #expect(outcome.errors.hasPrefix("datavault: "))
    #expect(outcome.errors.contains("\nhint: "))
    #expect(outcome.output.isEmpty)
  }

  @Test(arguments: [
    (["DATAVAULT_HOME": "/a", "STATE_DIRECTORY": "/b", "XDG_DATA_HOME": "/c"], "/a"),
    (["STATE_DIRECTORY": "/b:/d", "XDG_DATA_HOME": "/c"], "/b"),
    (["XDG_DATA_HOME": "/c", "HOME": "/h"], "/c/datavault"),
    (["XDG_DATA_HOME": "relative", "HOME": "/h"], "/h/.local/share/datavault"),
    (["DATAVAULT_HOME": "", "HOME": "/h"], "/h/.local/share/datavault"),
  ])
  func `the home comes from the environment variables in the documented order`(
    environment: [String: String], home: String
  ) throws {
    let outcome = try Tool.run(["status", "absent"], environment: environment)
    #expect(outcome.status == 66)
    #expect(outcome.errors.contains("(\(home)/vaults/absent.vault)"))
  }
}
