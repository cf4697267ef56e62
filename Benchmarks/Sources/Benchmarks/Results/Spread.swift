import Foundation

/// The figures of several rounds.
struct Spread {
  /// In ascending order.
  let sorted: [Double]

  init(_ values: [Double]) {
    sorted = values.sorted()
  }

  var median: Double {
    sorted.isEmpty ? .nan : (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }

  var text: String { Self.text(median) }

  var range: String {
    guard let first = sorted.first, let last = sorted.last else { return "" }
    return "\(Self.text(first))..\(Self.text(last))"
  }

  static func text(_ value: Double) -> String { String(format: "%.2f", value) }
}

/// The goal for a figure.
enum Goal: CustomStringConvertible {
  case atMost(Double)
  case atLeast(Double)
  /// No goal: the figure is only reported.
  case none

  var description: String {
    switch self {
    case .atMost(let goal): "<= \(Spread.text(goal))"
    case .atLeast(let goal): ">= \(Spread.text(goal))"
    case .none: ""
    }
  }

  /// The result of the rounds of one row.
  func result(of rounds: Spread) -> GoalResult {
    let misses: (Double) -> Bool
    switch self {
    case .atMost(let goal): misses = { $0 > goal }
    case .atLeast(let goal): misses = { $0 < goal }
    case .none: return .met
    }
    guard misses(rounds.median) else { return .met }
    return rounds.sorted.count(where: misses) * 4 < rounds.sorted.count * 3
      ? .withinTolerance : .missed
  }
}

/// How the rounds of a row compare with the goal.
enum GoalResult: String {
  case met
  /// The median exceeds the goal, but fewer than three of four rounds do.
  case withinTolerance = "within tolerance"
  /// The median and three of four rounds exceed the goal.
  case missed
}
