import TestSupport
import Testing

/// Seeded runs of real nodes over a log in memory, judged by ``SoakJudge``.
///
/// `DATAVAULT_NODE_SOAK_SECONDS` sets how long each run publishes, `DATAVAULT_NODE_SOAK_RUNS` how many runs there are,
/// `DATAVAULT_NODE_SOAK_SEED` the first seed. A seed repeats the choices of a run, not their moments.
@Suite struct NodeSoakTests {
  @Test func `nothing acknowledged is lost or doubled, and all nodes have the same rows`()
    async throws
  {
    let first: UInt64 = setting("DATAVAULT_NODE_SOAK_SEED") ?? 1
    let count: UInt64 = setting("DATAVAULT_NODE_SOAK_RUNS") ?? 2
    let milliseconds = (setting("DATAVAULT_NODE_SOAK_SECONDS") as Int?).map { $0 * 1_000 }
    var totals = SoakJudge.Totals()
    for seed in first..<first + count {
      var settings = SoakSettings()
      settings.seed = seed
      settings.nodeCount = seed % 3 == 0 ? 2 : 3
      settings.duration = .milliseconds(milliseconds ?? 1_500)
      settings.syncInterval = seed % 2 == 0 ? .milliseconds(400) : .zero
      let soak = try NodeSoak(settings)
      try await soak.run()
      totals = totals + soak.judge.totals
      #expect(soak.judge.violations.prefix(10) == [], "seed \(seed)")
    }
    print(
      """
      node soak: runs \(count), acknowledged \(totals.acknowledged), leased \(totals.leased), \
      settled \(totals.settled), faults \(totals.faults), undone \(totals.undone)
      """)
    #expect(totals.acknowledged > 0)
    #expect(totals.leased > 0)
    #expect(totals.settled > 0)
    // The first fault of a run comes within a second. Whether brokers forget what is to be undone depends on moments.
    #expect(totals.faults > 0)
  }
}
