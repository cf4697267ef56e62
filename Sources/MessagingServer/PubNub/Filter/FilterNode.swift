internal import StrictJSON

/// A part of a filter.
indirect enum FilterNode: Sendable {
  /// A number, `true`, `false` or `null`.
  case constant(JSONValue)
  /// A string, and the pattern that it is behind `LIKE`.
  case text(String, FilterPattern)
  /// A value of the message.
  case member(FilterSource, [FilterStep])
  /// `(a, b)`: at least two values.
  case list([FilterNode])
  case unary(FilterUnary, FilterNode)
  case binary(FilterBinary, FilterNode, FilterNode)
}

/// Where a value of a message is.
enum FilterSource: Sendable {
  case payload, meta
}

/// A step from an object or array to a value in it.
enum FilterStep: Sendable {
  case name(String)
  case index(Int)
}

/// An operator before its operand, which binds tightest.
enum FilterUnary: Sendable {
  case not, minus, complement
}

/// An operator between two operands.
enum FilterBinary: Sendable, CaseIterable {
  case or, and
  case equal, notEqual, lessOrEqual, greaterOrEqual, less, greater, like, contains
  case bitOr, bitXor, bitAnd
  case plus, minus, times, divided, remainder

  /// How it is written; in the order of the cases, the longer of two that begin alike comes first.
  var symbol: String {
    switch self {
    case .or: "||"
    case .and: "&&"
    case .equal: "=="
    case .notEqual: "!="
    case .lessOrEqual: "<="
    case .greaterOrEqual: ">="
    case .less: "<"
    case .greater: ">"
    case .like: "LIKE"
    case .contains: "CONTAINS"
    case .bitOr: "|"
    case .bitXor: "^"
    case .bitAnd: "&"
    case .plus: "+"
    case .minus: "-"
    case .times: "*"
    case .divided: "/"
    case .remainder: "%"
    }
  }

  /// How tight it binds: operators of a higher level first, those of one level from the left.
  var level: Int {
    switch self {
    case .or: 0
    case .and: 1
    case .equal, .notEqual, .lessOrEqual, .greaterOrEqual, .less, .greater, .like, .contains: 2
    case .bitOr, .bitXor, .bitAnd: 3
    case .plus, .minus: 4
    case .times, .divided, .remainder: 5
    }
  }

  var isComparison: Bool { level == 2 }
}
