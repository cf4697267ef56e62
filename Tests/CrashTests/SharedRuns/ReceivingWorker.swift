import Foundation
import Glibc
import Synchronization
import TestSupport

/// A thread that runs one `datavault queue receive` after another, until it is killed together with
/// the current process.
final class ReceivingWorker: Sendable {
  /// How the worker acknowledges.
  enum Habit: Sendable {
    /// The receiver acknowledges what it has printed.
    case byPrinting
    /// Another process acknowledges some of what was received; the leases of the rest end.
    case some
  }

  private struct State {
    var process: Process?
    var isKilled = false
    var visits: [DeliveryChecker.Visit] = []
    var findings: [String] = []
  }

  /// Long enough to notice that a delivery is held, short enough to wait for its end.
  static let lease = Duration.milliseconds(400)

  private let tool: CommandLineTool
  private let channel: String
  private let run: Int
  private let publisherCount: Int
  private let habit: Habit
  private let state = Mutex(State())
  private let isOver = DispatchSemaphore(value: 0)

  init(_ tool: CommandLineTool, channel: String, run: Int, publisherCount: Int, habit: Habit) {
    self.tool = tool
    self.channel = channel
    self.run = run
    self.publisherCount = publisherCount
    self.habit = habit
  }

  func start(seed: UInt64) {
    Thread.detachNewThread { [self] in
      var random = SeededRandom(seed: seed)
      while !state.withLock({ $0.isKilled }) { visit(&random) }
      isOver.signal()
    }
  }

  /// Returns after the first receive.
  func waitForFirstVisit() throws {
    try eventually("a message is received") {
      state.withLock { !$0.visits.isEmpty || !$0.findings.isEmpty }
    }
  }

  /// Sends SIGKILL to the current process; returns the visits and the findings.
  func kill() -> (visits: [DeliveryChecker.Visit], findings: [String]) {
    state.withLock { state in
      state.isKilled = true
      if let process = state.process, process.isRunning {
        Glibc.kill(process.processIdentifier, SIGKILL)
      }
    }
    isOver.wait()
    return state.withLock { ($0.visits, $0.findings) }
  }

  private func visit(_ random: inout SeededRandom) {
    let count = 1 + random.next(30)
    var command = ["receive", channel, "--ndjson", "--max", "\(count)", "--lease", "400ms"]
    if habit == .some { command.append("--no-ack") }
    guard let outcome = run(tool.queueArguments(command)) else { return }
    var visit = DeliveryChecker.Visit(start: outcome.start, end: outcome.end, lease: Self.lease)
    var tokens: [String] = []
    for line in outcome.lines {
      guard let received = try? JSONDecoder().decode(KeyedLine.Received.self, from: Data(line)),
        let label = KeyedLine.label(of: received, run: run, publisherCount: publisherCount)
      else {
        find("received an unknown message: \(String(decoding: line.prefix(80), as: UTF8.self))")
        continue
      }
      tokens.append(received.token ?? "")
      let settlement: DeliveryChecker.Settlement =
        habit == .some ? .none : outcome.status == 0 ? .certain(at: outcome.end) : .perhaps
      visit.deliveries.append((label, received.orderingKey, settlement))
    }
    if outcome.status != 0 && !outcome.isKilled { find("receive: \(outcome.error)") }
    if habit == .some, outcome.status == 0 { acknowledge(&visit, tokens, &random) }
    state.withLock { [visit] in $0.visits.append(visit) }
  }

  /// Acknowledges the first part of what was received.
  private func acknowledge(
    _ visit: inout DeliveryChecker.Visit, _ tokens: [String], _ random: inout SeededRandom
  ) {
    let count = random.next(tokens.count + 1)
    if count == 0 { return }
    guard let outcome = run(tool.queueArguments(["ack"] + tokens.prefix(count))) else { return }
    for index in 0..<count {
      // Some can have been leased to another since; the test does not ask which.
      visit.deliveries[index].settlement =
        outcome.status == 0 ? .certain(at: outcome.end) : .perhaps
    }
  }

  private func find(_ finding: String) { state.withLock { $0.findings.append(finding) } }

  /// The result of a process, whether it ended by itself or was killed.
  struct Outcome {
    let start: Duration
    let end: Duration
    let status: Int32
    let isKilled: Bool
    /// The complete lines.
    let lines: [[UInt8]]
    let error: String
  }

  /// Nil if the worker was killed before the start.
  private func run(_ arguments: [String]) -> Outcome? {
    let files = ScratchFolder()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Program.datavault)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try? files.writing("output")
    process.standardError = try? files.writing("errors")
    let start = Self.now
    let hasStarted = state.withLock { state in
      guard !state.isKilled, (try? process.run()) != nil else { return false }
      state.process = process
      return true
    }
    guard hasStarted else { return nil }
    process.waitUntilExit()
    let end = Self.now
    state.withLock { $0.process = nil }
    let bytes = (try? files.bytes("output")) ?? []
    return Outcome(
      start: start, end: end, status: process.terminationStatus,
      isKilled: process.terminationReason == .uncaughtSignal,
      lines: bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        .dropLast().map(Array.init),
      error: files.contents(of: "errors") ?? "")
  }

  /// The clock of leases.
  static var now: Duration {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
