import Glibc

/// Runs a workload on all contestants, alternately.
struct Race {
  let contestants: Contestants

  /// The rows of a workload: our ratio to plain SQLite with the peers' ratios, and further goals.
  func run(_ workload: Workload) throws -> [ResultRow] {
    var ours = Comparison(workload.name, goal: .atMost(workload.goal))
    var peers = contestants.peers.map { Comparison($0.name, goal: .none) }
    var beside = Comparison(
      "... times as fast as SQLCipher",
      goal: workload.leastSpeedOfSQLCipher.map { Goal.atLeast($0) } ?? .none)
    // The first round fills the caches and does not count.
    for round in 0...workload.roundCount {
      let isSealedFirst = round.isMultiple(of: 2)
      let pair = try measure(
        workload, contestants.ours, contestants.plain, isSealedFirst: isSealedFirst)
      if round > 0 { ours.add(ours: pair.sealed, other: pair.plain) }
      for (index, peer) in contestants.peers.enumerated() {
        let other = try measure(workload, peer.sealed, peer.plain, isSealedFirst: isSealedFirst)
        if round == 0 { continue }
        peers[index].add(ours: other.sealed, other: other.plain)
        if peer.name == Contestants.sqlCipher {
          beside.add(
            ours: other.sealed.relative(to: other.plain),
            other: pair.sealed.relative(to: pair.plain))
        }
      }
    }
    ours.peers = Dictionary(uniqueKeysWithValues: peers.map { ($0.name, $0) })
    if workload.kind == .opening { return [openingRow(ours, count: workload.pass.count)] }
    if workload.leastSpeedOfSQLCipher == nil || beside.pairs.isEmpty { return [ours.row] }
    return [ours.row, beside.row]
  }

  private func measure(
    _ workload: Workload, _ sealed: any Contestant, _ plain: any Contestant, isSealedFirst: Bool
  ) throws -> (sealed: Cost, plain: Cost) {
    let recipe = workload.recipe
    try sealed.prepare(recipe)
    try plain.prepare(recipe)
    func cost(_ contestant: any Contestant) throws -> Cost {
      sync()  // otherwise this round would include unwritten data of the previous contestant
      return try contestant.run(workload.pass, on: recipe, as: workload.kind)
    }
    if isSealedFirst {
      let first = try cost(sealed)
      return (first, try cost(plain))
    }
    let first = try cost(plain)
    return (try cost(sealed), first)
  }

  /// Openings are compared by difference, because a plain opening takes almost no time.
  private func openingRow(_ comparison: Comparison, count: Int) -> ResultRow {
    func milliseconds(_ comparison: Comparison) -> Spread {
      Spread(
        comparison.pairs.map { ($0.ours - $0.other).wallSeconds / Double(count) * 1000 })
    }
    return ResultRow(
      "\(comparison.name): beyond plain", milliseconds(comparison), unit: "ms", goal: .atMost(2),
      peers: comparison.peers.mapValues(milliseconds))
  }
}
