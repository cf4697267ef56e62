import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// Stopping a daemon while it works.
@Suite struct StopTests {
  @Test
  func `messages answered before a stop are delivered once, before it or after the next start`()
    throws
  {
    let spool = try Spool.unsecured()
    let traffic = Traffic(spool, clientCount: 4, burst: 5)
    var daemon = try Daemon(spool).whenDelivering()
    traffic.begin(round: 0)
    // The daemon stops while clients send: it has answered some lines and delivered fewer.
    try spool.waitForLines(daemon) { $0.count >= 10 }
    #expect(daemon.stop() == 0)
    traffic.end()
    let answered = traffic.answered
    #expect(answered.count >= 10)

    // No client sends any more.
    daemon = try Daemon(spool).whenDelivering()
    try spool.waitForLines(daemon) { _ in answered.isSubset(of: spool.deliveredCounts().keys) }
    #expect(daemon.stop() == 0)
    let counts = spool.deliveredCounts()
    #expect(counts.filter { $0.value != 1 } == [:])
    #expect(traffic.sent.isSuperset(of: counts.keys))
    #expect(try spool.messageCount() == 0)
  }

  @Test func `a stop waits for the running command, and acknowledges its message`() throws {
    let spool = try Spool.unsecured()
    let gate = spool.folder.path("gate")
    #expect(mkfifo(gate, 0o600) == 0)
    // The command appends its line, then waits until the test opens the gate.
    let daemon = try Daemon(
      spool, command: ["/bin/sh", "-c", "\(spool.appendingScript); cat <\(gate)"])
    try daemon.wait(for: "STATUS=delivering")
    #expect(try Client(spool.socket).ask("a text")?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0.count == 1 }
    daemon.send(SIGTERM)
    try daemon.wait(for: "STOPPING=1")
    #expect(daemon.isRunning)
    let descriptor = open(gate, O_WRONLY)
    close(descriptor)
    #expect(daemon.waitForEnd() == 0)
    #expect(try spool.messageCount() == 0)
    #expect(spool.deliveredLines() == ["a 1 text"])
  }

  @Test func `a stop answers the lines that a client sent before it`() throws {
    let spool = try Spool.unsecured()
    let daemon = try Daemon(spool, command: ["true"]).whenDelivering()
    let client = try Client(spool.socket)
    #expect(client.ask("first 1")?.hasPrefix("ok first ") == true)
    let lines = (0..<100).map { "l\($0) text\n" }.joined()
    #expect(client.send(lines))
    daemon.send(SIGTERM)
    for number in 0..<100 {
      #expect(client.answer()?.hasPrefix("ok l\(number) ") == true)
    }
    #expect(client.answer() == nil)
    #expect(daemon.waitForEnd() == 0)
  }

  @Test(arguments: ["SpoolDaemon", "Jobs"])
  func `a stop is clean while clients connect`(program: String) throws {
    let spool = try Spool.unsecured()
    for _ in 0..<5 {
      let daemon =
        program == "Jobs" ? try Daemon(jobsIn: spool) : try Daemon(spool).whenDelivering()
      try daemon.wait { (try? Client(spool.socket)) != nil }
      let threads = DispatchGroup()
      let count = Mutex(0)
      for _ in 0..<2 {
        threads.enter()
        Thread.detachNewThread {
          while daemon.isRunning {
            if (try? Client(spool.socket)) != nil { count.withLock { $0 += 1 } }
          }
          threads.leave()
        }
      }
      try daemon.wait { count.withLock { $0 } >= 20 }
      #expect(daemon.stop() == 0, "\(daemon.errors.suffix(300))")
      threads.wait()
    }
  }
}
