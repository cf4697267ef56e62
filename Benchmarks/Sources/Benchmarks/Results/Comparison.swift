/// Paired measurements of our code and of a reference, taken alternately in one run.
///
/// Only ratios within a pair count, because machines differ, and one machine differs from minute to
/// minute. A goal is missed if the median ratio exceeds it and three of four pairs exceed it too.
struct Comparison {
  let name: String
  /// The goal for the ratio.
  let goal: Goal
  /// Whether processor time decides.
  ///
  /// Otherwise wall time does, for work that uses the disk.
  let isDecidedByProcessorTime: Bool
  private(set) var pairs: [(ours: Cost, other: Cost)] = []
  /// The ratios of the peers, each to its own plain SQLite.
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

  /// The row for the table.
  var row: ResultRow {
    ResultRow(
      name: name, figure: wall.text, spread: wall.range, processor: processor.text,
      peers: peers.mapValues(\.wall.text), goal: goal.description,
      result: goal.result(of: isDecidedByProcessorTime ? processor : wall))
  }
}
