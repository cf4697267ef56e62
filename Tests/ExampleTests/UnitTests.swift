import Foundation
import Glibc
import TestSupport
import Testing

/// `Examples/systemd/spoold.service`, as far as it can be tested without systemd.
@Suite struct UnitTests {
  private static let analyze = "/usr/bin/systemd-analyze"
  private static let hasAnalyze = FileManager.default.isExecutableFile(atPath: analyze)

  @Test(.enabled(if: hasAnalyze, "systemd-analyze is not installed"))
  func `systemd-analyze accepts the unit, and rates its exposure at most 1.2`() throws {
    let folder = ScratchFolder()
    // The path of the built daemon. The users of the unit do not have to exist for the check.
    let text = try Repository.text(UnitSandbox.unit)
      .replacing("/usr/local/bin/spoold", with: Daemon.executable)
    let path = try folder.file("spoold.service", text.utf8)

    let verification = try Program.run(Self.analyze, ["verify", "--man=no", path])
    #expect(verification.status == 0)
    #expect(verification.errors == "")
    // The threshold is in tenths: 12 means an exposure of 1.2 out of 10.
    let security = try Program.run(
      Self.analyze, ["security", "--offline=true", "--threshold=12", "--no-pager", path])
    #expect(security.status == 0, "\(security.text)")
  }

  @Test(.enabled(if: hasAnalyze, "systemd-analyze is not installed"), arguments: [false, true])
  func `systemd-analyze accepts the units of the message server, and rates their exposure`(
    inCluster: Bool
  ) throws {
    let folder = ScratchFolder()
    if inCluster {
      let dropIns = folder.path("datavaultd.service.d")
      try FileManager.default.createDirectory(atPath: dropIns, withIntermediateDirectories: true)
      try Repository.text("Examples/systemd/datavaultd-cluster.conf")
        .write(toFile: dropIns + "/cluster.conf", atomically: true, encoding: .utf8)
    }
    let paths = try [
      "datavaultd.service", "datavaultd.socket", "datavaultd-operations.socket",
      "datavaultd-stomp.socket",
    ].map { name in
      // A program that exists.
      let text = try Repository.text("Examples/systemd/\(name)")
        .replacing("/usr/local/bin/datavaultd", with: "/bin/true")
      return try folder.file(name, text.utf8)
    }
    let verification = try Program.run(Self.analyze, ["verify", "--man=no"] + paths)
    #expect(verification.status == 0)
    #expect(verification.errors == "")
    let security = try Program.run(
      Self.analyze, ["security", "--offline=true", "--threshold=12", "--no-pager", paths[0]])
    #expect(security.status == 0, "\(security.text)")
  }

  @Test(
    .enabled(
      if: hasAnalyze && UnitSandbox.isAvailable,
      "the unit's filters need root, systemd-analyze, python3, keyctl and a kernel that allows them"
    ))
  func `the daemon and its command work under the unit's filters`() throws {
    let spool = try Spool.secured()
    let sandbox = try UnitSandbox(spool.folder)
    let password = try spool.credentials(Spool.password)
    try sandbox.take(spool)
    defer { _ = try? spool.datavault("lock", "messaging", through: sandbox.operatorWrapper) }

    // First locked, until the operator unlocks the vault as the daemon's user.
    var daemon = try Daemon(spool, through: sandbox.wrapper)
    try daemon.wait(for: "READY=1")
    let client = try Client(spool.socket)
    #expect(client.ask("a one") == "no a locked")
    try spool.unlock(with: password, through: sandbox.operatorWrapper)
    try daemon.wait(for: "STATUS=delivering")
    #expect(client.ask("a one")?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 one"] }
    #expect(daemon.stop() == 0, "\(daemon.errors)")
    #expect(!daemon.errors.contains("locked into memory"), "\(daemon.errors)")

    // Then with a credential.
    daemon = try Daemon(spool, credentials: password, through: sandbox.wrapper).whenDelivering()
    #expect(try Client(spool.socket).ask("b two")?.hasPrefix("ok b ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 one", "b 1 two"] }
    #expect(daemon.stop() == 0, "\(daemon.errors)")
  }

  @Test func `the unit does not restart after a wrong password, and waits for a running command`()
    throws
  {
    let lines = try Repository.text(UnitSandbox.unit).split(separator: "\n")
    func value(_ name: String) -> Substring? {
      lines.first { $0.hasPrefix(name + "=") }?.dropFirst(name.count + 1)
    }
    #expect(value("RestartPreventExitStatus")?.split(separator: " ").contains("77") == true)
    #expect(value("KillMode") == "mixed")
    // The time limit of a command, plus ten seconds in which the engine must stop.
    #expect(try #require(value("TimeoutStopSec").flatMap { Int($0) }) > 60 + 10)
    // These settings would hide the keyring or the boot id. The test of the filters does not cover
    // them.
    #expect(value("PrivateUsers") == nil && value("ProcSubset") == nil)
  }

  @Test func `the daemon refuses an unsecured vault under the unit's environment`() throws {
    let unit = try Repository.text(UnitSandbox.unit)
    #expect(unit.contains("\nEnvironment=DATAVAULT_REQUIRE_SECURED=1\n"))
    let wrapper = ["env", "DATAVAULT_REQUIRE_SECURED=1"]
    let daemon = try Daemon(Spool.unsecured(), through: wrapper)
    #expect(throws: DaemonEnded.self) { try daemon.wait(for: "STATUS=delivering") }
    #expect((daemon.isRunning ? daemon.stop() : daemon.waitForEnd()) == 78)
    #expect(daemon.errors.contains("datavault secure"), "\(daemon.errors)")
  }

  @Test func `the code that links the library has fewer than 100 lines`() throws {
    let folder = "Examples/Spool"
    var linking: [String: Int] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: Repository.path(folder)) {
      let text = try Repository.text("\(folder)/\(name)")
      guard text.contains("import MessagingQueue\n"), name != "ExitStatus.swift" else { continue }
      // Counted without imports, comments and blank lines.
      linking[name] = text.split(separator: "\n").map { $0.drop { $0 == " " } }
        .count { !$0.isEmpty && !$0.hasPrefix("//") && !$0.hasPrefix("internal import") }
    }
    #expect(Set(linking.keys) == ["Spool.swift", "Ingest.swift", "Delivering.swift"])
    #expect(linking.values.reduce(0, +) < 100, "\(linking)")
  }
}
