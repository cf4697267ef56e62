import FileLayer
import Foundation
import GRDB
import TestSupport

/// Kills publishing processes at random moments and checks what is left, many times.
///
/// After some kills, a stock SQLite writes to the files. After each kill, no file shows plaintext,
/// the database opens, it is intact, and every page of it opens. The received messages are the sent
/// ones from the first line on, and no acknowledged message is missing.
actor KillRuns: BlockingActor {
  struct Totals: Sendable {
    var runs = 0
    var acknowledged = 0
    var lost = 0
    var wrong = 0
    var stockShells = 0
    var killedInLog = 0
    var findings: [String] = []

    var summary: String {
      "kill runs: \(runs), acknowledged: \(acknowledged), with a log at the kill: \(killedInLog), "
        + "stock sqlite3 between: \(stockShells), lost: \(lost), wrong: \(wrong)"
    }
  }

  private static let runsPerHome = 25
  private static let channel = "numbered-channel"

  let executor = BlockingExecutor(label: "kill-runs")
  private let search = FileSearch(
    texts: [
      NumberedLines.canary, Array(channel.utf8), Array(CommandLineTool.password.utf8),
      Array("SQLite format 3".utf8), Array("CREATE TABLE".utf8),
    ])
  private var random: SeededRandom
  private var totals = Totals()

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  func callAsFunction(count: Int) async throws -> Totals {
    var tool: CommandLineTool?
    for run in 0..<count {
      if run % Self.runsPerHome == 0 {
        tool?.remove()
        tool = try CommandLineTool()
      }
      try await once(NumberedLines(run: run), tool!)
      guard totals.findings.isEmpty else {
        totals.findings.append("the files are in \(tool!.folder.path)")
        return totals
      }
    }
    tool?.remove()
    return totals
  }

  private func once(_ lines: NumberedLines, _ tool: CommandLineTool) async throws {
    let publisher = try PublishingProcess(
      tool: tool, channel: Self.channel, seed: random.next(), line: lines.line)
    if random.oneIn(5) {
      // Anywhere from its first instruction on: unlocking, opening, recovery of the last run.
      usleep(UInt32(random.next(800_000)))
    } else {
      try publisher.waitForFirstAcknowledgement()
      // The kill comes at a random moment.
      usleep(UInt32(random.next(400_000)))
    }
    publisher.kill()
    let acknowledged = try publisher.acknowledgedCount
    totals.runs += 1
    totals.acknowledged += acknowledged
    if FileManager.default.fileExists(atPath: tool.database.path + "-wal") {
      totals.killedInLog += 1
    }

    try meddle(with: tool, lines.run)
    try expectNoPlaintext(in: tool, lines.run)
    if FileManager.default.fileExists(atPath: tool.database.path) {
      for finding in try await DatabaseCheck.findings(home: tool.home) {
        report("run \(lines.run): \(finding)")
      }
    }
    let outcome = try tool.run(["queue", "receive", Self.channel])
    if outcome.status != 0 {
      report("run \(lines.run): receive ended with \(outcome.status): \(outcome.errors)")
    }
    let (correct, found) = lines.count(in: outcome.output)
    if correct < acknowledged {
      totals.lost += acknowledged - correct
      report("run \(lines.run): \(acknowledged) acknowledged, \(correct) received")
    }
    if correct != found {
      report("run \(lines.run): message \(correct) of \(found) is not what was sent")
    }
    try expectNoPlaintext(in: tool, lines.run)
  }

  private func meddle(with tool: CommandLineTool, _ run: Int) throws {
    guard random.oneIn(3), FileManager.default.fileExists(atPath: tool.database.path) else {
      return
    }
    let statement = StockShell.statements.randomElement(using: &random)!
    totals.stockShells += 1
    for file in try StockShell.changedFiles(running: statement, on: tool) {
      report("run \(run): stock sqlite3 changed \(file) by \(statement)")
    }
  }

  private func expectNoPlaintext(in tool: CommandLineTool, _ run: Int) throws {
    for hit in try search.hits(in: tool.home) { report("run \(run): plaintext in \(hit)") }
  }

  private func report(_ finding: String) {
    totals.wrong += 1
    totals.findings.append(finding)
  }
}
