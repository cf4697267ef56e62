import Foundation
import Glibc
import TestSupport
import Testing

/// Repeated `kill -9` of the daemon and its commands.
///
/// `DATAVAULT_DAEMON_KILL_RUNS=100` runs more rounds. `DATAVAULT_KILL_SEED` repeats the random
/// choices of an earlier run.
@Suite struct DaemonKillTests {
  private static let workerCount = 2

  @Test
  func `kill -9 at random moments loses no answered message, and repeats only leased messages`()
    throws
  {
    let runs: Int = setting("DATAVAULT_DAEMON_KILL_RUNS") ?? 5
    let seed = SeededRandom.killSeed()
    var random = SeededRandom(seed: seed)
    let spool = try Spool.unsecured()
    let traffic = Traffic(spool, clientCount: 3, burst: 4)
    var warnings = 0
    for run in 0..<runs {
      let daemon = try start(spool)
      traffic.begin(round: run)
      // One run in three is killed at any time after the start, also during opening and recovery.
      if !random.oneIn(3) {
        let before = traffic.answered.count
        try daemon.wait { traffic.answered.count > before }
      }
      // The kill comes at a random moment.
      usleep(UInt32(random.next(300_000)))
      daemon.killEverything()
      #expect(daemon.waitForEnd() == 128 + SIGKILL)
      traffic.end()
      warnings += Self.warnings(daemon)
    }

    // The last run delivers and acknowledges everything. Messages that a kill left leased follow
    // when their leases end.
    let daemon = try start(spool)
    try daemon.wait(for: "STATUS=delivering")
    try daemon.wait { try spool.messageCount() == 0 }
    #expect(daemon.stop() == 0)
    warnings += Self.warnings(daemon)

    let counts = spool.deliveredCounts()
    let lost = traffic.answered.subtracting(counts.keys)
    let repeated = counts.values.reduce(0) { $0 + $1 - 1 }
    print(
      "daemon kill runs: \(runs), answered: \(traffic.answered.count), lost: \(lost.count), "
        + "delivered again: \(repeated), seed: \(seed)")
    #expect(lost == [])
    #expect(traffic.sent.isSuperset(of: counts.keys))
    #expect(traffic.unexpectedAnswers == [])
    #expect(repeated <= runs * Self.workerCount + warnings)
  }

  /// Starts a daemon with leases that are longer than any command, unless the machine stalls.
  private func start(_ spool: Spool) throws -> Daemon {
    try Daemon(
      spool, ["--workers", "\(Self.workerCount)", "--lease", "20", "--attempts", "100000"])
  }

  /// The number of commands that failed or took too long.
  ///
  /// They might have appended their line.
  private static func warnings(_ daemon: Daemon) -> Int {
    daemon.errors.split(separator: "\n").count { $0.contains(" warning spoold") }
  }
}
