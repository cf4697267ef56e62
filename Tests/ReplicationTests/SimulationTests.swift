import Replication
import TestSupport
import Testing

/// Many seeded runs of the whole, judged by ``Judge``.
///
/// `DATAVAULT_SIMULATION_STEPS` sets the number of steps, `DATAVAULT_SIMULATION_SEED` the first seed.
@Suite struct SimulationTests {
  private static let stepsEach = 20_000
  private static let defaultSteps = 80_000

  @Test func `nothing acknowledged is lost or doubled, and all nodes are equal`() {
    let steps = setting("DATAVAULT_SIMULATION_STEPS") ?? Self.defaultSteps
    let first: UInt64 = setting("DATAVAULT_SIMULATION_SEED") ?? 1
    var totals = Simulation.Totals()
    var lost = 0
    var twice = 0
    var wrong = 0
    for seed in first..<first + UInt64(max(1, steps / Self.stepsEach)) {
      var settings = SimulationSettings()
      settings.seed = seed
      settings.steps = Self.stepsEach
      settings.brokersForget = seed % 2 == 0
      let simulation = Simulation(settings)
      let violations = simulation.run()
      totals.add(simulation.totals)
      lost += violations.filter { $0.contains("lost") }.count
      twice += violations.filter { $0.contains("twice") || $0.contains("two") }.count
      wrong += violations.isEmpty ? 0 : 1
      #expect(violations == [], "seed \(seed)")
    }
    print(
      """
      simulation: steps \(totals.steps), commits \(totals.commits), leases \(totals.leases), \
      settled \(totals.settled), crashes \(totals.crashes), power cuts \(totals.powerCuts), repairs \(totals.repairs), joins \(totals.joins), \
      trimmed \(totals.trims), lost \(lost), twice \(twice), wrong \(wrong)
      """)
    // Fewer runs, or those of a chosen seed, can be without some of it.
    guard steps >= Self.defaultSteps, setting("DATAVAULT_SIMULATION_SEED") as UInt64? == nil
    else { return }
    let happened = [
      "commits": totals.commits, "leases": totals.leases, "settled": totals.settled,
      "crashes": totals.crashes, "power cuts": totals.powerCuts, "repairs": totals.repairs,
      "joins": totals.joins, "trimmed": Int(totals.trims),
    ]
    #expect(happened.filter { $0.value == 0 } == [:])
  }

  @Test func `a key switch that comes back before a report of a member counts after it`() {
    var settings = SimulationSettings()
    settings.seed = 90
    settings.steps = 4_000
    settings.cutsRecords = false
    #expect(Simulation(settings).run() == [])
  }
}
