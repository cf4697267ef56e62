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
  /// `limit` is what measurements show to be possible, where that is not the goal; the page on
  /// benchmarks has them.
  case atMost(Double, limit: Double? = nil)
  case atLeast(Double, limit: Double? = nil)
  /// No goal: the figure is only reported.
  case none

  var description: String {
    switch self {
    case .atMost(let goal, nil): "<= \(Spread.text(goal))"
    case .atMost(let goal, let limit?): "<= \(Spread.text(goal)), limit \(Spread.text(limit))"
    case .atLeast(let goal, nil): ">= \(Spread.text(goal))"
    case .atLeast(let goal, let limit?): ">= \(Spread.text(goal)), limit \(Spread.text(limit))"
    case .none: ""
    }
  }

  /// The result of the rounds of one row.
  func result(of rounds: Spread) -> GoalResult {
    let misses: (Double) -> Bool
    switch self {
    case .atMost(let goal, nil): misses = { $0 > goal }
    case .atMost(let goal, let limit?):
      if rounds.median <= goal { return .met }
      misses = { $0 > limit }
      if !misses(rounds.median) { return .limit }
    case .atLeast(let goal, nil): misses = { $0 < goal }
    case .atLeast(let goal, let limit?):
      if rounds.median >= goal { return .met }
      misses = { $0 < limit }
      if !misses(rounds.median) { return .limit }
    case .none: return .none
    }
    guard misses(rounds.median) else { return .met }
    return rounds.sorted.count(where: misses) * 4 < rounds.sorted.count * 3
      ? .withinTolerance : .missed
  }
}

/// How the rounds of a row compare with the goal.
enum GoalResult: String {
  /// There is no goal.
  case none = ""
  case met
  /// The median misses the goal, but not its limit.
  case limit
  /// The median misses the goal, or its limit, but fewer than three of four rounds do.
  case withinTolerance = "within tolerance"
  /// The median and three of four rounds miss the goal, or its limit.
  case missed
}
