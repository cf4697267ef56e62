import TestSupport
import Testing

/// `make crash RUNS=1000` runs these with `DATAVAULT_KILL_RUNS=1000`, on 10,000 jobs for each 100 kills;
/// the default is 10 kills on 1,000 jobs.
@Suite struct WorkerRunTests {
  @Test func `kill -9 and locks of a worker lose no job, and its rows are there exactly once`()
    async throws
  {
    let count: Int = setting("DATAVAULT_KILL_RUNS") ?? 10
    let seed = SeededRandom.killSeed()
    var totals = WorkerRuns.Totals()
    for round in 0..<(count + 99) / 100 {
      let kills = min(100, count - round * 100)
      totals += try await WorkerRuns(
        seed: seed &+ UInt64(round), jobsPerChannel: kills == 100 ? 200 : 20
      )(killCount: kills)
    }
    print("\(totals.summary), seed: \(seed)")
    #expect(totals.findings == [])
    #expect(totals.killCount == count)
    #expect(totals.lostCount == 0)
  }

  @Test func `a worker that acknowledges a job before its handler is found out`() async throws {
    let totals = try await WorkerRuns(seed: 16, jobsPerChannel: 20, mode: "early")(killCount: 3)
    #expect(totals.lostCount > 0)
  }
}
