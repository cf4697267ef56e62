import Foundation

/// Figures of several rounds.
struct Spread {
  /// From the smallest to the largest.
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

/// What a figure may be.
enum Goal: CustomStringConvertible {
  case atMost(Double)
  case atLeast(Double)
  /// For the record only.
  case none

  var description: String {
    switch self {
    case .atMost(let goal): "<= \(Spread.text(goal))"
    case .atLeast(let goal): ">= \(Spread.text(goal))"
    case .none: ""
    }
  }

  /// Not met only if the median says so and three of four rounds agree.
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
