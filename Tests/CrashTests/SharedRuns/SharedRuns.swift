import FileLayer
import Foundation
import Glibc
import TestSupport

/// Kills publishers and receivers that work on one home, each at a random moment, and checks what a
/// last receiver finds.
///
/// A message that was acknowledged to its publisher is in the queue once, or a receiver has
/// acknowledged it. Acknowledged messages are not delivered again; all others are, but not before
/// their leases end. Messages of a key are in order.
actor SharedRuns: BlockingActor {
  struct Totals: Sendable {
    var runs = 0
    var killed = 0
    var acknowledged = 0
    var received = 0
    var again = 0
    var lost = 0
    var wrong = 0
    var findings: [String] = []

    static func + (a: Totals, b: Totals) -> Totals {
      Totals(
        runs: a.runs + b.runs, killed: a.killed + b.killed,
        acknowledged: a.acknowledged + b.acknowledged, received: a.received + b.received,
        again: a.again + b.again, lost: a.lost + b.lost, wrong: a.wrong + b.wrong,
        findings: a.findings + b.findings)
    }

    var summary: String {
      "kill runs of several: \(runs), killed: \(killed), acknowledged: \(acknowledged), "
        + "received: \(received), delivered again: \(again), lost: \(lost), wrong: \(wrong)"
    }
  }

  private static let runsPerHome = 20
  private static let publisherCount = 2

  let executor = BlockingExecutor(label: "shared-runs")
  private let search = FileSearch(texts: [NumberedLines.canary])
  private var random: SeededRandom
  private var totals = Totals()

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  /// - Parameter runs: the numbers of the runs.
  func callAsFunction(_ runs: some Sequence<Int> & Sendable) async throws -> Totals {
    var tool: CommandLineTool?
    for (index, run) in runs.enumerated() {
      if index % Self.runsPerHome == 0 {
        tool?.remove()
        tool = try CommandLineTool(withKeyFile: true)
      }
      guard let tool else { break }
      try await once(run, tool)
      guard totals.findings.isEmpty else {
        totals.findings.append("the files are in \(tool.folder.path)")
        return totals
      }
      if index % Self.runsPerHome == Self.runsPerHome / 2 {
        totals.findings += try await DatabaseCheck.findings(home: tool.home)
        totals.findings += try search.hits(in: tool.home).map { "plaintext in \($0)" }
        totals.wrong += totals.findings.count
      }
    }
    tool?.remove()
    return totals
  }

  private func once(_ run: Int, _ tool: CommandLineTool) async throws {
    let channel = "channel-\(run)"
    let publishers = try (0..<Self.publisherCount).map { publisher in
      let keyed = KeyedLine(run: run, publisher: publisher)
      return try PublishingProcess(
        tool: tool, channel: channel, name: "-\(publisher)", options: ["--ndjson"],
        burst: 12, pauseEvery: 1, count: 150, seed: random.next(), line: keyed.line)
    }
    let receivers = [ReceivingWorker.Habit.byPrinting, .some].map { habit in
      ReceivingWorker(
        tool, channel: channel, run: run, publisherCount: Self.publisherCount, habit: habit)
    }
    // A receiver has nothing to do before the first message has made the channel.
    let beginsAtOnce = random.next(6) == 0
    if !beginsAtOnce { try publishers[0].waitForFirstAcknowledgement() }
    for receiver in receivers { receiver.start(seed: random.next()) }
    if !beginsAtOnce { for receiver in receivers { try receiver.waitForFirstVisit() } }

    var checker = DeliveryChecker(acknowledged: Array(repeating: 0, count: Self.publisherCount))
    var findings: [String] = []
    for worker in Array(0..<Self.publisherCount + receivers.count).shuffled(using: &random) {
      // Each kill comes at a random moment.
      usleep(UInt32(random.next(180_000)))
      if worker < Self.publisherCount {
        publishers[worker].kill()
        checker.acknowledged[worker] = try publishers[worker].acknowledgedCount
      } else {
        let seen = receivers[worker - Self.publisherCount].kill()
        checker.visits += seen.visits
        findings += seen.findings
      }
      totals.killed += 1
    }
    // The leases of killed workers end.
    usleep(UInt32(ReceivingWorker.lease / .microseconds(1)) + 20_000)
    try drain(run, channel, tool, &checker, &findings)
    record(checker, findings, run)
  }

  private func drain(
    _ run: Int, _ channel: String, _ tool: CommandLineTool, _ checker: inout DeliveryChecker,
    _ findings: inout [String]
  ) throws {
    var visit = DeliveryChecker.Visit(start: ReceivingWorker.now, end: .zero, lease: .seconds(30))
    let outcome = try tool.run(["queue", "receive", channel, "--ndjson"])
    visit.end = ReceivingWorker.now
    // After a kill before the first publication there is possibly no database.
    let isAbsent = outcome.status == 66 && checker.acknowledged.allSatisfy { $0 == 0 }
    if outcome.status != 0 && !isAbsent {
      findings.append("the last receive ended with \(outcome.status): \(outcome.errors)")
    }
    for line in outcome.output.split(separator: UInt8(ascii: "\n")) {
      guard let received = try? JSONDecoder().decode(KeyedLine.Received.self, from: Data(line)),
        let label = KeyedLine.label(of: received, run: run, publisherCount: Self.publisherCount)
      else {
        findings.append("the last receive got a message that no publisher sent")
        continue
      }
      visit.deliveries.append((label, received.orderingKey, .certain(at: visit.end)))
    }
    checker.drain = visit
  }

  private func record(_ checker: DeliveryChecker, _ findings: [String], _ run: Int) {
    let lost = checker.lost
    let wrong = checker.wrong + findings
    totals.runs += 1
    totals.acknowledged += checker.acknowledged.reduce(0, +)
    let deliveries = checker.all.flatMap(\.deliveries)
    totals.received += deliveries.count
    totals.again += deliveries.count - Set(deliveries.map(\.label)).count
    totals.lost += lost.count
    totals.wrong += wrong.count
    if !lost.isEmpty { totals.findings.append("run \(run): lost \(lost.prefix(5))") }
    totals.findings += wrong.prefix(5).map { "run \(run): \($0)" }
  }
}
