import DataVault
import FileLayer
import Foundation
import GRDB
import Glibc
import MessagingQueue
import SystemPackage
import TestSupport
import VaultCrypto
import VaultedDatabase

/// Kills `JobProgram` at random moments or locks its vault, and checks what its handlers have done.
///
/// No job is lost: its handler has worked to its end before it is acknowledged. A job that was
/// completed does not come again, and one whose process was killed not before its lease has ended.
/// The rows that were committed with an acknowledgement are there exactly once.
actor WorkerRuns: BlockingActor {
  struct Totals: Sendable {
    var killCount = 0
    var lockCount = 0
    var jobCount = 0
    var deliveryCount = 0
    var lostCount = 0
    var findings: [String] = []

    static func += (a: inout Totals, b: Totals) {
      a.killCount += b.killCount
      a.lockCount += b.lockCount
      a.jobCount += b.jobCount
      a.deliveryCount += b.deliveryCount
      a.lostCount += b.lostCount
      a.findings += b.findings
    }

    var summary: String {
      "kill runs of workers: \(killCount), by a lock: \(lockCount), jobs: \(jobCount), "
        + "deliveries: \(deliveryCount), lost: \(lostCount), wrong: \(findings.count)"
    }
  }

  static let channelCount = 50
  private static let lease: Duration = .milliseconds(600)
  private static let password = "correct horse battery"

  let executor = BlockingExecutor(label: "worker-runs")
  private let jobsPerChannel: Int
  private let mode: String
  private var random: SeededRandom

  /// - Parameter mode: how the program acknowledges; `early` is before the work.
  init(seed: UInt64, jobsPerChannel: Int, mode: String = "work") {
    random = SeededRandom(seed: seed)
    self.jobsPerChannel = jobsPerChannel
    self.mode = mode
  }

  func callAsFunction(killCount: Int) async throws -> Totals {
    let folder = ScratchFolder()
    let home = DataVaultHome(folder("home"))
    let credentials = Credentials(password: SecretBytes(copying: Array(Self.password.utf8)))
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials, parameters: home.vaultParameters)
    try await fill(home, vault)

    var totals = Totals()
    var checker = DeliveryChecker(
      acknowledged: Array(repeating: jobsPerChannel, count: Self.channelCount))
    for run in 0..<killCount {
      let locks = random.oneIn(4)
      let worker = try JobProcess(home: home, mode: mode, folder: folder, name: "run-\(run)")
      // Anywhere from its first instruction on, or after its first job.
      if !random.oneIn(4) { try worker.waitForFirstLine() }
      usleep(UInt32(random.next(mode == "early" ? 120_000 : 400_000)))
      if locks { worker.lock() }
      worker.kill(after: locks ? Duration.milliseconds(random.next(200)) : .zero)
      checker.visits.append(try worker.visit(lease: Self.lease))
      totals.killCount += 1
      totals.lockCount += locks ? 1 : 0
    }
    // The leases of killed workers end.
    usleep(UInt32(Self.lease / .microseconds(1)) + 20_000)
    let drain = try JobProcess(home: home, mode: "drain", folder: folder, name: "drain")
    if !drain.waitForEnd() { totals.findings.append("the last worker did not end") }
    checker.drain = try drain.visit(lease: Self.lease)

    let lost = checker.lost
    totals.lostCount = lost.count
    totals.jobCount = Self.channelCount * jobsPerChannel
    totals.deliveryCount = checker.all.reduce(0) { $0 + $1.deliveries.count }
    totals.findings += checker.wrong.prefix(5)
    if mode == "work" {
      totals.findings += lost.prefix(5).map { "lost \($0)" }
      totals.findings += try await rowFindings(home, vault)
    }
    return totals
  }

  private func fill(_ home: DataVaultHome, _ vault: Vault) async throws {
    let engine = try await MessagingEngine.start(home, vault: vault)
    try await engine.write { db in
      try db.execute(
        sql: "CREATE TABLE done (channel INTEGER, number INTEGER, PRIMARY KEY (channel, number))")
    }
    for index in 0..<Self.channelCount {
      let channel = try Channel("jobs-\(index)")
      try await engine.publish(
        (0..<jobsPerChannel).map { Message(channel: channel, "\($0)") })
    }
    try await engine.stop()
  }

  /// Each even job has left its row, and no other job has.
  private func rowFindings(_ home: DataVaultHome, _ vault: Vault) async throws -> [String] {
    let engine = try await MessagingEngine.start(home, vault: vault)
    let (rowCount, oddCount) = try await engine.read { db in
      (
        try Int.fetchOne(db, sql: "SELECT count(*) FROM done") ?? 0,
        try Int.fetchOne(db, sql: "SELECT count(*) FROM done WHERE number % 2 = 1") ?? 0
      )
    }
    let messageCount = try await engine.statistics().messageCount
    try await engine.stop()
    var findings: [String] = []
    if rowCount != Self.channelCount * jobsPerChannel / 2 || oddCount > 0 {
      findings.append("\(rowCount) rows were committed, \(oddCount) of them wrong")
    }
    if messageCount > 0 { findings.append("\(messageCount) jobs are left") }
    return findings
  }
}

/// A `JobProgram` until it is killed.
private final class JobProcess {
  private let process = Process()
  private let output: URL
  private let input = Pipe()
  private let start = ReceivingWorker.now
  private var end = Duration.zero

  init(home: DataVaultHome, mode: String, folder: ScratchFolder, name: String) throws {
    output = folder.url.appendingPathComponent(name)
    _ = FileManager.default.createFile(atPath: output.path, contents: nil)
    process.executableURL = URL(fileURLWithPath: Program.built("JobProgram"))
    process.arguments = [home.path.string, "\(WorkerRuns.channelCount)", mode]
    process.standardInput = input
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = FileHandle.nullDevice
    signal(SIGPIPE, SIG_IGN)
    try process.run()
  }

  func waitForFirstLine() throws {
    try eventually("a job is handled") { try !Data(contentsOf: output).isEmpty }
  }

  /// Has the program lock its vault.
  func lock() {
    try? input.fileHandleForWriting.write(contentsOf: Data("lock\n".utf8))
  }

  func kill(after pause: Duration) {
    let deadline = DispatchTime.now() + .nanoseconds(Int(pause / .nanoseconds(1)))
    // The kill comes at a random moment.
    while process.isRunning, DispatchTime.now() < deadline { usleep(1_000) }
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    end = ReceivingWorker.now
  }

  /// - Returns: whether it ended by itself.
  func waitForEnd() -> Bool {
    let hasEnded = (try? eventually { !process.isRunning }) != nil
    if !hasEnded { Glibc.kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    end = ReceivingWorker.now
    return hasEnded
  }

  /// The deliveries that the program's lines tell of; those that threw were given back, and do not
  /// count.
  func visit(lease: Duration) throws -> DeliveryChecker.Visit {
    var visit = DeliveryChecker.Visit(start: start, end: end, lease: lease)
    var settlements: [DeliveryChecker.Label: DeliveryChecker.Settlement] = [:]
    var order: [DeliveryChecker.Label] = []
    let lines = try String(contentsOf: output, encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    for line in lines {
      let words = line.split(separator: " ")
      guard words.count == 3, let channel = Int(words[1]), let number = Int(words[2]) else {
        continue
      }
      let label = DeliveryChecker.Label(publisher: channel, number: number)
      switch words[0] {
      case "begin":
        // One that began before and did not throw was delivered twice: the checker says so.
        if settlements[label] != nil {
          visit.deliveries.append((label, nil, settlements[label] ?? .none))
        }
        settlements[label] = DeliveryChecker.Settlement.none
        order.append(label)
      case "worked": settlements[label] = .perhaps
      case "completed": settlements[label] = .certain(at: end)
      default: settlements[label] = nil
      }
    }
    var seen: Set<DeliveryChecker.Label> = []
    for label in order where seen.insert(label).inserted {
      if let settlement = settlements[label] { visit.deliveries.append((label, nil, settlement)) }
    }
    return visit
  }
}
