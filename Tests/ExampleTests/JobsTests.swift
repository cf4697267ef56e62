import Foundation
import Glibc
import TestSupport
import Testing

/// The daemon of the tutorial, `docs/tutorial/a-daemon-for-jobs.md`, run as its reader runs it.
@Suite struct JobsTests {
  @Test(.enabled(if: Sessions.areAvailable, "the kernel refuses its keyring to this process"))
  func `the tutorial's daemon starts sealed, works from the unlock to the lock, and stops cleanly`()
    throws
  {
    let spool = try Spool.secured()
    defer { _ = try? spool.datavault("lock", "messaging") }
    let daemon = try Daemon(jobsIn: spool)
    let client = try connect(to: spool, daemon)
    #expect(client.ask("a hello") == "no: the vault is locked")

    try spool.unlock()
    try ask("a hello", client, daemon, until: "ok")
    try ask("a", client, daemon, until: "olleh")
    // The same line again is the same job.
    #expect(client.ask("a other") == "ok")
    #expect(client.ask("a") == "olleh")
    #expect(client.ask("unknown") == "no: unknown job")

    // Its three attempts fail, with back-off between them.
    #expect(client.ask("b fail") == "ok")
    try daemon.wait {
      try spool.datavault("queue", "dead-letters", "jobs").text.contains("told to fail")
    }
    #expect(client.ask("b") == "waiting")
    let metrics = client.ask("metrics") ?? ""
    #expect(metrics.contains(#""datavault_jobs_total.acknowledged": 1"#), "\(metrics)")
    #expect(metrics.contains(#""datavault_jobs_total.retried": 2"#), "\(metrics)")

    #expect(try spool.datavault("lock", "messaging").status == 0)
    try ask("a", client, daemon, until: "no: the vault is locked")
    try spool.unlock()
    try ask("a", client, daemon, until: "olleh")
    #expect(daemon.stop() == 0)
    #expect(daemon.output.contains("b failed for good: told to fail"))
  }

  @Test func `a stop of the tutorial's daemon waits for a running job`() throws {
    let spool = try Spool.unsecured()
    var daemon = try Daemon(jobsIn: spool)
    var client = try connect(to: spool, daemon)
    try ask("a wait", client, daemon, until: "ok")
    #expect(daemon.stop() == 0)
    daemon = try Daemon(jobsIn: spool)
    client = try connect(to: spool, daemon)
    try ask("a", client, daemon, until: "tiaw")
    #expect(daemon.stop() == 0)
  }

  @Test func `the tutorial shows the daemon whole, and it has at most 150 lines`() throws {
    let page = try Repository.text("docs/tutorial/a-daemon-for-jobs.md")
    let program = try Repository.text("Examples/Jobs/Jobs.swift")
    #expect(page.contains("```swift\n\(program)```\n"))
    #expect(program.split(separator: "\n", omittingEmptySubsequences: false).count - 1 <= 150)
  }

  private func connect(to spool: Spool, _ daemon: Daemon) throws -> Client {
    try daemon.wait { (try? Client(spool.socket)) != nil }
    return try Client(spool.socket)
  }

  /// Sends a line until the daemon gives this answer.
  private func ask(
    _ line: String, _ client: Client, _ daemon: Daemon, until answer: String
  ) throws {
    try daemon.wait { client.ask(line) == answer }
  }
}
