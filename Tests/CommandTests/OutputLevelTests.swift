import Foundation
import TestSupport
import Testing

/// `--quiet` and `--verbose`.
@Suite struct OutputLevelTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  @Test func `every command has --quiet and --verbose, and refuses both together`() throws {
    var count = 0
    func check(_ command: [String: Any], _ path: [String]) throws {
      let subcommands = (command["subcommands"] as? [[String: Any]] ?? [])
        .filter { $0["commandName"] as? String != "help" }
      for subcommand in subcommands {
        try check(subcommand, path + [try #require(subcommand["commandName"] as? String)])
      }
      guard subcommands.isEmpty else { return }
      let names = (command["arguments"] as? [[String: Any]] ?? []).compactMap {
        ($0["preferredName"] as? [String: Any])?["name"] as? String
      }
      #expect(names.contains("quiet") && names.contains("verbose"), "\(path)")
      count += 1
    }
    let dump = try Tool.run(["--experimental-dump-help"]).output
    let help = try JSONSerialization.jsonObject(with: Data(dump)) as? [String: Any]
    try check(try #require(help?["command"] as? [String: Any]), [])
    #expect(count > 50)
    try home.run("list", "--quiet", "--verbose")
      .expect(64, says: "give only one of --quiet and --verbose")
  }

  @Test func `--quiet omits warnings, and prints results and errors`() throws {
    let warned = try home.queue("export", home.folder.path("loud"))
    #expect(warned.errors.contains("in plaintext"))
    let quiet = try home.queue("export", home.folder.path("soft"), "--quiet").expect(0)
    #expect(quiet.errors.isEmpty, "\(quiet.errors)")
    #expect(try home.queue("history", "c", "--quiet").text == "first\n")
    try home.run("status", "missing", "--quiet").expect(66, says: "datavault: ")
  }

  @Test(arguments: [["items", "messaging"], ["queue", "stats"]])
  func `--quiet still warns that a vault is not secured`(command: [String]) throws {
    let home = try TestHome.unsecured()
    let outcome = try home.run(command + ["--quiet"]).expect(0)
    #expect(outcome.errors.components(separatedBy: "publicly known password").count == 2)
  }

  @Test func `--verbose names the home, the slot and the time of each step, and no secret`() throws
  {
    let code = try home.unlocked("slots", "add", "messaging", "paper", "--recovery-code").text
    let codeFile = try home.folder.file("code", Array(code.utf8))
    let outcome = try home.run(
      "queue", "stats", "--verbose", "--recovery-code-file", codeFile
    ).expect(
      0, says: "datavault: home \(home.path), vaults in store 'file'\n",
      "datavault: opened vault 'messaging' with slot 'recovery:paper' in ",
      "datavault: started the engine in ", "datavault: stopped the engine in ",
      "datavault: finished in ")
    #expect(outcome.errors.components(separatedBy: "home \(home.path)").count == 2)
    for secret in [code.trimmingCharacters(in: .newlines), TestHome.password, "first"] {
      #expect(!outcome.errors.contains(secret))
    }
    let byPassword = try home.run(
      "queue", "stats", "--verbose", "--password-file", home.passwordFile)
    #expect(byPassword.errors.contains("slot 'password'"))
    #expect(try home.queue("stats").errors.isEmpty)
  }

  @Test(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
  func `--verbose says that a session opened the vault`() throws {
    try home.unlocked("unlock", "messaging", "--for", "60s").expect(0)
    defer { _ = try? home.run("lock", "messaging") }
    try home.run("items", "messaging", "--verbose")
      .expect(0, says: "opened vault 'messaging' with its session")
  }

  @Test func `both are accepted before the command`() throws {
    let arguments = ["--home", home.path, "list"]
    try Tool.run(["--verbose"] + arguments).expect(0, says: "datavault: finished in ")
    #expect(try Tool.run(["--quiet"] + arguments).expect(0).errors.isEmpty)
  }
}
