import Replication
import TestSupport
import Testing

/// Turns each rule off, on its own, and looks for a run that then breaks a promise.
@Suite struct RuleTests {
  struct Rule: Sendable, CustomTestStringConvertible {
    let name: String
    let rule: SafetyRules
    /// Where the search begins: a seed that was found to turn red.
    let seed: UInt64
    let steps: Int
    /// What must be found, where another rule that hides it is turned off too.
    let violation: String

    init(
      _ name: String, _ rule: SafetyRules, _ seed: UInt64, steps: Int = 4_000,
      violation: String = ""
    ) {
      self.name = name
      self.rule = rule
      self.seed = seed
      self.steps = steps
      self.violation = violation
    }

    var testDescription: String { name }
  }

  static let rules = [
    Rule("skipsRepeated", .skipsRepeated, 42, violation: "twice"),
    Rule("skipsGaps", .skipsGaps, 4, violation: "settled before"),
    Rule("drawsAuthorsAtStart", .drawsAuthorsAtStart, 10, violation: "lost"),
    Rule("followsEarlierAuthor", .followsEarlierAuthor, 32),
    Rule("comparesOverlap", .comparesOverlap, 14),
    Rule("returnsUndone", .returnsUndone, 25, violation: "lost"),
    Rule("keepsTail", .keepsTail, 11),
    Rule("carriesOutbox", .carriesOutbox, 2004, steps: 20_000),
    Rule("refusesTrimmedLog", .refusesTrimmedLog, 2006, steps: 20_000),
    Rule("trimsBehindMembers", .trimsBehindMembers, 9),
    Rule("joinsBeforeBackup", .joinsBeforeBackup, 2011, steps: 20_000),
    Rule("boundsFastClocks", .boundsFastClocks, 54),
    Rule("deduplicatesByTimetoken", .deduplicatesByTimetoken, 37),
    Rule("fencesEpochs", .fencesEpochs, 58),
    Rule("waitsForOldLeases", .waitsForOldLeases, 2014),
    Rule("needsHeartbeat", .needsHeartbeat, 61, steps: 20_000),
    Rule("blocksInFlight", .blocksInFlight, 55),
    Rule("answersAfterReadBack", .answersAfterReadBack, 6),
    Rule("answersRepeated", .answersRepeated, 29),
    Rule("ordersKeys", .ordersKeys, 8),
    // A repair record that comes in time leaves no timetoken for another message.
    Rule(
      "namesByOrigin", [.namesByOrigin, .repairsCursors], 49,
      violation: "lease of another message"),
    Rule("repairsCursors", .repairsCursors, 11),
    Rule("endsEpochOnUndo", .endsEpochOnUndo, 50),
    Rule("skipsRetiredKeys", .skipsRetiredKeys, 2006, steps: 20_000),
    Rule("switchesKeyWithAll", .switchesKeyWithAll, 30),
  ]

  @Test(arguments: rules) func `without one rule, a run breaks a promise`(_ rule: Rule) {
    let limit: UInt64 = setting("DATAVAULT_RULE_SEEDS") ?? 200
    for seed in rule.seed..<rule.seed + limit {
      var settings = SimulationSettings()
      settings.rules = SafetyRules.all.subtracting(rule.rule)
      settings.seed = seed
      settings.steps = rule.steps
      // Without a part, a record that should be skipped is applied, and not just unreadable.
      settings.cutsRecords = false
      let simulation = Simulation(settings)
      let violations = simulation.run()
      if let found = violations.first(where: {
        $0.contains(rule.violation) || rule.violation.isEmpty
      }) {
        print("without \(rule.name): seed \(seed), step \(simulation.totals.steps): \(found)")
        return
      }
    }
    Issue.record("nothing went wrong without \(rule.name)")
  }
}
