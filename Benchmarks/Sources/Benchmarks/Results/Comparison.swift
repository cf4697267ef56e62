/// Paired measurements of us and of what we are compared with, taken alternately in one run.
///
/// Only ratios within a pair are compared: machines differ, and one machine differs from minute to
/// minute. A goal is missed when the median ratio exceeds it and the pairs agree: three of four
/// exceed it too.
struct Comparison {
  let name: String
  /// What the ratio may be.
  let goal: Goal
  /// Whether processor time decides; else wall time does, as where a disk takes part.
  let isDecidedByProcessorTime: Bool
  private(set) var pairs: [(ours: Cost, other: Cost)] = []
  /// The same workload on others, each beside its own plain SQLite.
  var peers: [String: Comparison] = [:]

  init(_ name: String, goal: Goal, decidedByProcessorTime: Bool = false) {
    self.name = name
    self.goal = goal
    isDecidedByProcessorTime = decidedByProcessorTime
  }

  mutating func add(ours: Cost, other: Cost) {
    pairs.append((ours, other))
  }

  var wall: Spread { Spread(pairs.map { $0.ours.wallSeconds / $0.other.wallSeconds }) }

  var processor: Spread {
    Spread(pairs.map { $0.ours.processorSeconds / $0.other.processorSeconds })
  }

  /// A row of the table.
  var row: ResultRow {
    ResultRow(
      name: name, figure: wall.text, spread: wall.range, processor: processor.text,
      peers: peers.mapValues(\.wall.text), goal: goal.description,
      isMet: goal.isMet(by: isDecidedByProcessorTime ? processor : wall))
  }
}
