import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// The example daemon, run as an operator runs it.
@Suite struct SpoolTests {
  @Test func `the daemon answers a line with its timetoken, and the command gets the line`() throws
  {
    let spool = try Spool.secured()
    let daemon = try Daemon(spool, credentials: spool.credentials(Spool.password)).whenDelivering()
    let client = try Client(spool.socket)

    let answer = try #require(client.ask("order-1 two words"))
    #expect(answer.wholeMatch(of: /ok order-1 [0-9]{17}/) != nil, "\(answer)")
    try spool.waitForLines(daemon) { $0 == ["order-1 1 two words"] }

    #expect(daemon.stop() == 0)
    let statistics = try spool.datavault(
      "queue", "stats", "--json", "--password-file",
      spool.credentials(Spool.password) + "/messaging-password")
    #expect(statistics.text.contains("\"messages\":0"), "\(statistics.errors)")
    #expect(!FileManager.default.fileExists(atPath: spool.socket))
  }

  @Test
  func `the daemon never removes a file that is not a socket, nor the socket of another daemon`()
    throws
  {
    let spool = try Spool.unsecured()
    let url = URL(fileURLWithPath: spool.socket)
    try Data("foreign".utf8).write(to: url)
    var daemon = try Daemon(spool)
    #expect(throws: DaemonEnded.self) { try daemon.wait(for: "READY=1") }
    #expect(try String(contentsOf: url, encoding: .utf8) == "foreign")
    try FileManager.default.removeItem(at: url)

    daemon = try Daemon(spool).whenDelivering()
    // The socket file is removed, and another daemon takes its name.
    try FileManager.default.removeItem(at: url)
    let other = try Daemon(spool).whenDelivering()
    #expect(daemon.stop() == 0)
    #expect(try Client(spool.socket).ask("a text")?.hasPrefix("ok a ") == true)
    #expect(other.stop() == 0)
    #expect(!FileManager.default.fileExists(atPath: spool.socket))
  }

  @Test func `several concurrent clients get all answers, and every message is delivered`() throws {
    let spool = try Spool.unsecured()
    let daemon = try Daemon(spool).whenDelivering()
    let (clientCount, lineCount) = (6, 25)
    let answers = Mutex<[String]>([])
    let group = DispatchGroup()
    for number in 0..<clientCount {
      let client = try Client(spool.socket)
      group.enter()
      Thread.detachNewThread {
        // Sends all lines before it reads an answer.
        client.send((0..<lineCount).map { "c\(number).\($0) hello\n" }.joined())
        client.finish()
        while let answer = client.answer() { answers.withLock { $0.append(answer) } }
        group.leave()
      }
    }
    group.wait()

    let ids = (0..<clientCount).map { client in (0..<lineCount).map { "c\(client).\($0)" } }
    let answered = answers.withLock { $0 }.filter { $0.hasPrefix("ok ") }
      .map { String($0.split(separator: " ")[1]) }
    // The answers are in the order of each client's lines.
    for (client, ids) in ids.enumerated() {
      #expect(answered.filter { $0.hasPrefix("c\(client).") } == ids)
    }
    try spool.waitForLines(daemon) { $0.count == clientCount * lineCount }
    #expect(daemon.stop() == 0)
    #expect(
      spool.deliveredCounts() == Dictionary(uniqueKeysWithValues: ids.joined().map { ($0, 1) }))
  }

  @Test func `a refused line is answered with the reason, and the other lines are accepted`()
    throws
  {
    let spool = try Spool.unsecured()
    let daemon = try Daemon(spool).whenDelivering()
    let client = try Client(spool.socket)

    client.send("nospace\n bad\na/b bad\nempty \n")
    #expect(client.answer() == "no nospace malformed")
    #expect(client.answer() == "no - malformed")
    #expect(client.answer() == "no - malformed")
    #expect(client.answer()?.hasPrefix("ok empty ") == true)

    let limit = 1 << 20
    client.send(Array("large ".utf8) + [UInt8](repeating: 0x61, count: limit + 1) + [0x0A])
    #expect(client.answer() == "no large too-large")
    client.send(Array("huge ".utf8) + [UInt8](repeating: 0x61, count: 5 * limit) + [0x0A])
    #expect(client.answer() == "no huge too-large")
    client.send(Array("just ".utf8) + [UInt8](repeating: 0x61, count: limit) + [0x0A])
    let first = client.answer()
    #expect(first?.hasPrefix("ok just ") == true, "\(first ?? "")")
    // The same id again, as after a lost answer, is the same message.
    #expect(client.ask("just anything") == first)
    #expect(daemon.stop() == 0)
    #expect(spool.deliveredCounts()["just", default: 0] <= 1)
  }

  @Test func `a line without its newline is not a message`() throws {
    let spool = try Spool.unsecured()
    let daemon = try Daemon(spool).whenDelivering()
    let client = try Client(spool.socket)
    client.send("whole 1\nhalf")
    client.finish()
    #expect(client.answer()?.hasPrefix("ok whole ") == true)
    #expect(client.answer() == nil)
    try spool.waitForLines(daemon) { !$0.isEmpty }
    #expect(daemon.stop() == 0)
    #expect(spool.deliveredLines() == ["whole 1 1"])
  }
}
