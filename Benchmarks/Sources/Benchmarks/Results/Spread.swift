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

  /// Missed only if the median misses the goal and three of four rounds miss it too.
  func isMet(by spread: Spread) -> Bool {
    let misses: (Double) -> Bool
    switch self {
    case .atMost(let goal): misses = { $0 > goal }
    case .atLeast(let goal): misses = { $0 < goal }
    case .none: return true
    }
    let count = spread.sorted.count
    return !misses(spread.median) || spread.sorted.count(where: misses) * 4 < count * 3
  }
}
