import Foundation
import Glibc
import TestSupport
import Testing

/// A daemon that starts locked where the kernel refuses sessions, as in most containers.
@Suite struct SealedStartTests {
  private let refused = KernelKeys.refused(with: EPERM)

  /// What `datavault status` says of the processes of a home.
  private struct Status: Decodable {
    struct Process: Decodable {
      let pid: Int32
      let state: String
      let sessionSeconds: Int?
    }
    let processes: [Process]
    let failedAttempts: Int
  }

  private func status(_ spool: Spool) throws -> Status {
    let outcome = try spool.datavault("status", "messaging", "--json", through: refused)
    return try JSONDecoder().decode(Status.self, from: Data(outcome.output))
  }

  private func unlock(_ spool: Spool, _ password: String = Spool.password) throws -> Program {
    try spool.datavault(
      "unlock", "messaging", "--for", "1h", "--password-file",
      spool.credentials(password) + "/messaging-password", through: refused)
  }

  @Test func `a daemon without kernel keys is unlocked, shown and locked by its socket`() throws {
    let spool = try Spool.secured()
    let withoutDaemon = try unlock(spool)
    #expect(withoutDaemon.status == 69)
    #expect(withoutDaemon.errors.contains("start the service first"), "\(withoutDaemon.errors)")

    let daemon = try Daemon(spool, through: refused)
    try daemon.wait(for: "READY=1")
    let client = try Client(spool.socket)
    #expect(client.ask("a early") == "no a locked")
    try daemon.wait { try status(spool).processes.map(\.state) == ["waiting"] }

    // Wrong passwords are counted, and the daemon stays locked.
    for _ in 0..<2 { #expect(try unlock(spool, "wrong horse battery").status == 77) }
    #expect(try status(spool).failedAttempts == 2)
    #expect(client.ask("a early") == "no a locked")

    let unlocked = try unlock(spool)
    #expect(unlocked.status == 0, "\(unlocked.errors)")
    try daemon.wait(for: "STATUS=delivering")
    #expect(client.ask("a early")?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 early"] }
    try daemon.wait { try status(spool).processes.map(\.state) == ["serving"] }
    #expect(try status(spool).processes.first?.sessionSeconds ?? 0 > 3000)
    let text = try spool.datavault("status", "messaging", through: refused).text
    #expect(text.contains(", serving since "), "\(text)")

    #expect(try spool.datavault("lock", "messaging", through: refused).status == 0)
    try daemon.wait(for: "STATUS=locked")
    try daemon.wait { try status(spool).processes.map(\.state) == ["waiting"] }
    #expect(daemon.stop() == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: spool.home + "/run").isEmpty)
  }

  @Test func `a killed daemon leaves a stale socket, and its successor needs another unlock`()
    throws
  {
    let spool = try Spool.secured()
    let first = try Daemon(spool, through: refused)
    try first.wait(for: "READY=1")
    try first.wait { try status(spool).processes.count == 1 }
    #expect(try unlock(spool).status == 0)
    try first.wait(for: "STATUS=delivering")
    first.send(SIGKILL)
    _ = first.waitForEnd()
    #expect(try status(spool).processes.isEmpty)
    #expect(try spool.datavault("lock", "messaging", through: refused).status == 69)

    let second = try Daemon(spool, through: refused)
    try second.wait(for: "READY=1")
    try second.wait { try status(spool).processes.map(\.state) == ["waiting"] }
    let names = try FileManager.default.contentsOfDirectory(atPath: spool.home + "/run")
    #expect(names.count == 1, "\(names)")
    #expect(try Client(spool.socket).ask("a early") == "no a locked")
    #expect(try unlock(spool).status == 0)
    try second.wait(for: "STATUS=delivering")
    #expect(second.stop() == 0)
  }

  @Test func `lock ends with 75 while a daemon that can have the session does not answer`() throws {
    let spool = try Spool.secured()
    let daemon = try Daemon(spool, through: refused)
    try daemon.wait { try status(spool).processes.count == 1 }
    #expect(try unlock(spool).status == 0)
    try daemon.wait(for: "STATUS=delivering")
    daemon.send(SIGSTOP)
    let lock = try spool.datavault("lock", "messaging", through: refused)
    #expect(lock.status == 75)
    #expect(lock.errors.contains("does not answer"), "\(lock.errors)")
    daemon.send(SIGCONT)
    #expect(try spool.datavault("lock", "messaging", through: refused).status == 0)
    try daemon.wait(for: "STATUS=locked")
    #expect(daemon.stop() == 0)
  }
}
