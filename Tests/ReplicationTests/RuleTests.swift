import Replication
import TestSupport
import Testing

/// Turns each rule off, on its own, and looks for a run that then breaks the promise that the rule keeps.
///
/// The same run with all rules must break none.
@Suite struct RuleTests {
  struct Rule: Sendable, CustomTestStringConvertible {
    let name: String
    let rule: SafetyRules
    /// Where the search begins: of the seeds that were found to turn red, the one with the fewest steps.
    let seed: UInt64
    let steps: Int
    /// What must be found.
    let violation: String
    /// Another rule that hides this one, and is turned off too.
    let hider: SafetyRules

    init(
      _ name: String, _ rule: SafetyRules, _ seed: UInt64, steps: Int = 4_000,
      hiddenBy hider: SafetyRules = [], _ violation: String
    ) {
      self.name = name
      self.rule = rule
      self.seed = seed
      self.steps = steps
      self.hider = hider
      self.violation = violation
    }

    var testDescription: String { name }
  }

  static let rules = [
    Rule("skipsRepeated", .skipsRepeated, 153, "twice"),
    Rule("skipsGaps", .skipsGaps, 166, "was settled before"),
    Rule("drawsAuthorsAtStart", .drawsAuthorsAtStart, 160, "lost: "),
    Rule("followsEarlierAuthor", .followsEarlierAuthor, 96, "order of key"),
    Rule("comparesOverlap", .comparesOverlap, 1, "diverged"),
    Rule("returnsUndone", .returnsUndone, 102, "lost: "),
    Rule("keepsTail", .keepsTail, 50, "foreignLog"),
    Rule("carriesOutbox", .carriesOutbox, 2111, steps: 20_000, "lost: "),
    Rule("refusesTrimmedLog", .refusesTrimmedLog, 2177, steps: 20_000, "diverged"),
    Rule("trimsBehindMembers", .trimsBehindMembers, 308, "found the log trimmed"),
    Rule("joinsBeforeBackup", .joinsBeforeBackup, 2105, steps: 20_000, "found the log trimmed"),
    Rule("boundsFastClocks", .boundsFastClocks, 93, "a fast clock has moved the log"),
    Rule("deduplicatesByTimetoken", .deduplicatesByTimetoken, 37, "diverged"),
    Rule("fencesEpochs", .fencesEpochs, 159, "a late worker settled"),
    Rule("waitsForOldLeases", .waitsForOldLeases, 1490, "leased to two"),
    Rule("needsHeartbeat", .needsHeartbeat, 158, steps: 20_000, "leased to two"),
    Rule("blocksInFlight", .blocksInFlight, 85, "leased to two"),
    Rule("answersAfterReadBack", .answersAfterReadBack, 113, "answered with done is lost"),
    Rule("answersRepeated", .answersRepeated, 114, "refused, although it counts"),
    Rule("ordersKeys", .ordersKeys, 85, "ordering key leased twice"),
    // A repair record that comes in time leaves no timetoken for another message.
    Rule(
      "namesByOrigin", .namesByOrigin, 209, hiddenBy: .repairsCursors, "lease of another message"),
    Rule("repairsCursors", .repairsCursors, 43, "missed"),
    Rule("endsEpochOnUndo", .endsEpochOnUndo, 108, "refused, although it counts"),
    Rule("skipsRetiredKeys", .skipsRetiredKeys, 2160, steps: 20_000, "unreadable"),
    Rule("switchesKeyWithAll", .switchesKeyWithAll, 19, "unreadable"),
  ]

  @Test(arguments: Exhaustive.sample(of: rules, oneIn: 4))
  func `without one rule, a run breaks a promise that it keeps with all`(
    _ rule: Rule
  ) {
    let limit: UInt64 = setting("DATAVAULT_RULE_SEEDS") ?? 200
    for seed in rule.seed..<rule.seed + limit {
      let simulation = simulation(of: rule, seed, without: rule.rule.union(rule.hider))
      guard let found = simulation.run().first(where: { $0.contains(rule.violation) })
      else { continue }
      print("without \(rule.name): seed \(seed), step \(simulation.totals.steps): \(found)")
      #expect(self.simulation(of: rule, seed, without: []).run() == [], "seed \(seed)")
      if !rule.hider.isEmpty {
        let others = self.simulation(of: rule, seed, without: rule.hider).run()
        #expect(!others.contains { $0.contains(rule.violation) }, "seed \(seed)")
      }
      return
    }
    Issue.record("nothing is '\(rule.violation)' without \(rule.name)")
  }

  private func simulation(
    of rule: Rule, _ seed: UInt64, without missing: SafetyRules
  ) -> Simulation {
    var settings = SimulationSettings()
    settings.rules = SafetyRules.all.subtracting(missing)
    settings.seed = seed
    settings.steps = rule.steps
    // Without a part, a record that should be skipped is applied, and not just unreadable.
    settings.cutsRecords = false
    return Simulation(settings)
  }
}
