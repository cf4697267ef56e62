import Foundation
import Glibc
import Testing

/// `Examples/systemd/spoold.service`, as far as it can be tried without systemd.
@Suite struct UnitTests {
  private static let analyze = "/usr/bin/systemd-analyze"
  private static let hasAnalyze = FileManager.default.isExecutableFile(atPath: analyze)

  @Test(.enabled(if: hasAnalyze, "systemd-analyze is not installed"))
  func `systemd finds no fault in the unit, and calls it safe`() throws {
    let spool = Spool(folder: try ScratchFolder())
    // Where the daemon is here; users need not exist to be looked at.
    let text = try String(contentsOf: UnitSandbox.unit, encoding: .utf8)
      .replacing("/usr/local/bin/spoold", with: Daemon.executable.path)
    let path = spool.folder.path("spoold.service")
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))

    let verification = try spool.run(Self.analyze, ["verify", "--man=no", path])
    #expect(verification.status == 0)
    #expect(verification.errors == "")
    // Of ten, in tenths.
    let security = try spool.run(
      Self.analyze, ["security", "--offline=true", "--threshold=12", "--no-pager", path])
    #expect(security.status == 0, "\(security.output)")
  }

  @Test(
    .enabled(
      if: hasAnalyze && UnitSandbox.isAvailable,
      "the unit's filters need root, systemd-analyze, python3, keyctl and a kernel that allows them"
    ))
  func `the daemon and its command do all their work under the unit's filters`() throws {
    let spool = try Spool.secured()
    let sandbox = try UnitSandbox(spool.folder)
    let password = try spool.credentials(Spool.password)
    try sandbox.take(spool)
    defer { _ = try? spool.datavault("lock", "messaging", through: sandbox.operatorWrapper) }

    // Locked, until the operator unlocks as the daemon's user.
    var daemon = try Daemon(spool, through: sandbox.wrapper)
    try daemon.wait(for: "READY=1")
    let client = try Client(spool.socket)
    #expect(client.ask("a one") == "no a locked")
    let unlock = try spool.datavault(
      "unlock", "messaging", "--for", "1h", "--password-file", password + "/messaging-password",
      through: sandbox.operatorWrapper)
    #expect(unlock.status == 0, "\(unlock.errors)")
    try daemon.wait(for: "STATUS=delivering")
    #expect(client.ask("a one")?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 one"] }
    #expect(daemon.stop() == 0, "\(daemon.errors)")
    #expect(!daemon.errors.contains("locked into memory"), "\(daemon.errors)")

    // And with a credential.
    daemon = try Daemon(spool, credentials: password, through: sandbox.wrapper)
    try daemon.wait(for: "STATUS=delivering")
    #expect(try Client(spool.socket).ask("b two")?.hasPrefix("ok b ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 one", "b 1 two"] }
    #expect(daemon.stop() == 0, "\(daemon.errors)")
  }

  @Test func `the unit does not start again with a wrong password, and waits for a command to end`()
    throws
  {
    let lines = try String(contentsOf: UnitSandbox.unit, encoding: .utf8).split(separator: "\n")
    func value(_ name: String) -> Substring? {
      lines.first { $0.hasPrefix(name + "=") }?.dropFirst(name.count + 1)
    }
    #expect(value("RestartPreventExitStatus")?.split(separator: " ").contains("77") == true)
    #expect(value("KillMode") == "mixed")
    // Nine tenths of a lease, and what the engine may take for its end.
    #expect(try #require(value("TimeoutStopSec").flatMap { Int($0) }) > 54 + 10)
    // Either would take the keyring or the boot id away, which the filters above do not show.
    #expect(value("PrivateUsers") == nil && value("ProcSubset") == nil)
  }

  @Test func `under the unit's environment a vault that is not secured is refused`() throws {
    let unit = try String(contentsOf: UnitSandbox.unit, encoding: .utf8)
    #expect(unit.contains("\nEnvironment=DATAVAULT_REQUIRE_SECURED=1\n"))
    let wrapper = ["env", "DATAVAULT_REQUIRE_SECURED=1"]
    let daemon = try Daemon(Spool.unsecured(), through: wrapper)
    #expect(throws: DaemonEnded.self) { try daemon.wait(for: "STATUS=delivering") }
    #expect((daemon.isRunning ? daemon.stop() : daemon.waitForEnd()) == 78)
    #expect(daemon.errors.contains("datavault secure"), "\(daemon.errors)")
  }

  @Test func `what links the library is under 100 lines`() throws {
    let folder = UnitSandbox.unit.deletingLastPathComponent()
      .appendingPathComponent("../Spool").standardizedFileURL
    var linking: [String: Int] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
      guard text.contains("import MessagingQueue\n"), name != "ExitStatus.swift" else { continue }
      // Without imports, comments and blank lines.
      linking[name] = text.split(separator: "\n").map { $0.drop { $0 == " " } }
        .count { !$0.isEmpty && !$0.hasPrefix("//") && !$0.hasPrefix("internal import") }
    }
    #expect(Set(linking.keys) == ["Spool.swift", "Ingest.swift", "Workers.swift"])
    #expect(linking.values.reduce(0, +) < 100, "\(linking)")
  }
}
