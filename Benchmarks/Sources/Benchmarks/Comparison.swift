import Foundation

/// Paired measurements of us and of what we are compared with, taken alternately in one run.
///
/// Only ratios within a pair are compared: machines differ, and one machine differs from minute to
/// minute. A goal is missed when the median ratio exceeds it and the pairs agree: three of four
/// exceed it too.
struct Comparison {
  let name: String
  /// The most that the ratio may be.
  let goal: Double
  /// Whether processor time decides; else wall time does, as where a disk takes part.
  let isDecidedByProcessorTime: Bool
  private(set) var pairs: [(ours: Cost, other: Cost)] = []

  init(_ name: String, goal: Double, decidedByProcessorTime: Bool = false) {
    self.name = name
    self.goal = goal
    isDecidedByProcessorTime = decidedByProcessorTime
  }

  mutating func add(ours: Cost, other: Cost) {
    pairs.append((ours, other))
  }

  var isMet: Bool {
    let ratios = isDecidedByProcessorTime ? processorRatios : wallRatios
    return Self.median(ratios) <= goal || ratios.count { $0 > goal } * 4 < ratios.count * 3
  }

  /// One line: name, wall ratio with its spread, processor ratio, goal, `met` or `missed`.
  var row: String {
    let wall = wallRatios
    return [
      name.padding(toLength: 48, withPad: " ", startingAt: 0),
      Self.text(Self.median(wall)),
      "(\(Self.text(wall[0]))..\(Self.text(wall[wall.count - 1])))",
      "cpu \(Self.text(Self.median(processorRatios)))",
      "goal \(Self.text(goal))",
      isMet ? "met" : "missed",
    ].joined(separator: "  ")
  }

  private var wallRatios: [Double] {
    pairs.map { $0.ours.wallSeconds / $0.other.wallSeconds }.sorted()
  }

  private var processorRatios: [Double] {
    pairs.map { $0.ours.processorSeconds / $0.other.processorSeconds }.sorted()
  }

  private static func median(_ sorted: [Double]) -> Double {
    (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }

  private static func text(_ ratio: Double) -> String {
    String(format: "%.2f", ratio)
  }
}
