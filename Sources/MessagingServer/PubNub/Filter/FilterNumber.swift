internal import StrictJSON

/// A number of a filter: exact as long as it is whole and fits 64 bits, otherwise a Double.
enum FilterNumber {
  case whole(Int64)
  case real(Double)

  /// nil for a value that is no number.
  init?(_ value: JSONValue) {
    switch value {
    case .integer(let number): self = .whole(number)
    case .number(let number): self = .real(number.double)
    default: return nil
    }
  }

  /// The number as JSON; null if it is not finite.
  var value: JSONValue {
    switch self {
    case .whole(let number): .integer(number)
    case .real(let number): JSONNumber(number).map { .number($0) } ?? .null
    }
  }

  /// The number if it is whole and fits 64 bits.
  var integer: Int64? {
    switch self {
    case .whole(let number): number
    case .real(let number): Int64(exactly: number)
    }
  }

  private var double: Double {
    switch self {
    case .whole(let number): Double(number)
    case .real(let number): number
    }
  }

  static func < (a: Self, b: Self) -> Bool {
    if case .whole(let a) = a, case .whole(let b) = b { return a < b }
    return a.double < b.double
  }

  static func == (a: Self, b: Self) -> Bool {
    if case .whole(let a) = a, case .whole(let b) = b { return a == b }
    return a.double == b.double
  }

  static func + (a: Self, b: Self) -> Self {
    calculate(a, b, { $0.addingReportingOverflow($1) }, +)
  }

  static func - (a: Self, b: Self) -> Self {
    calculate(a, b, { $0.subtractingReportingOverflow($1) }, -)
  }

  static func * (a: Self, b: Self) -> Self {
    calculate(a, b, { $0.multipliedReportingOverflow(by: $1) }, *)
  }

  /// The quotient: `7 / 2` is 3.5.
  static func / (a: Self, b: Self) -> Self {
    if case .whole(let a) = a, case .whole(let b) = b,
      b != 0, a.remainderReportingOverflow(dividingBy: b) == (0, false)
    {
      return .whole(a / b)
    }
    return .real(a.double / b.double)
  }

  /// The remainder, with the sign of the first number.
  static func % (a: Self, b: Self) -> Self {
    calculate(a, b, { $0.remainderReportingOverflow(dividingBy: $1) }) {
      $0.truncatingRemainder(dividingBy: $1)
    }
  }

  private static func calculate(
    _ a: Self, _ b: Self, _ exactly: (Int64, Int64) -> (partialValue: Int64, overflow: Bool),
    _ nearly: (Double, Double) -> Double
  ) -> Self {
    if case .whole(let a) = a, case .whole(let b) = b, case (let result, false) = exactly(a, b) {
      return .whole(result)
    }
    return .real(nearly(a.double, b.double))
  }
}
