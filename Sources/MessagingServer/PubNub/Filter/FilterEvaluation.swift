internal import StrictJSON

/// One evaluation of a filter, for one message.
///
/// No operator fails: what has no value is null.
struct FilterEvaluation {
  /// The filter needs too much time for this message.
  struct TooManySteps: Error {}

  let payload: JSONValue
  let meta: JSONValue
  var remainingStepCount: Int

  /// Whether a value counts as true: all but `false`, `null`, 0 and the empty string do.
  static func isTrue(_ value: JSONValue) -> Bool {
    switch value {
    case .null: false
    case .boolean(let value): value
    case .integer(let value): value != 0
    case .number(let value): value.double != 0
    case .string(let value): !value.utf8.isEmpty
    case .array, .object: true
    }
  }

  mutating func value(of node: FilterNode) throws(TooManySteps) -> JSONValue {
    try take(1)
    switch node {
    case .constant(let value): return value
    case .text(let text, _): return .string(text)
    case .member(let source, let steps): return try member(source, steps)
    case .list(let nodes):
      var values: [JSONValue] = []
      for node in nodes { values.append(try value(of: node)) }
      return .array(values)
    case .unary(let operation, let operand):
      return Self.apply(operation, try value(of: operand))
    case .binary(.or, let left, let right):
      if Self.isTrue(try value(of: left)) { return .boolean(true) }
      return .boolean(Self.isTrue(try value(of: right)))
    case .binary(.and, let left, let right):
      if !Self.isTrue(try value(of: left)) { return .boolean(false) }
      return .boolean(Self.isTrue(try value(of: right)))
    case .binary(.like, let left, .text(let text, let pattern)):
      return .boolean(try isLike(try value(of: left), pattern, text.utf8.count))
    case .binary(let operation, let left, let right):
      return try apply(operation, try value(of: left), try value(of: right))
    }
  }

  private mutating func take(_ stepCount: Int) throws(TooManySteps) {
    remainingStepCount -= stepCount
    guard remainingStepCount >= 0 else { throw TooManySteps() }
  }

  private mutating func member(
    _ source: FilterSource, _ steps: [FilterStep]
  ) throws(TooManySteps) -> JSONValue {
    var value = source == .payload ? payload : meta
    for step in steps {
      switch (step, value) {
      case (.name(let name), .object(let members)):
        try take(members.count * (name.utf8.count + 1))
        value = members[name] ?? .null
      case (.index(let index), .array(let values)) where index < values.count:
        value = values[index]
      default: return .null
      }
    }
    return value
  }

  // MARK: Operators

  private static func apply(_ operation: FilterUnary, _ value: JSONValue) -> JSONValue {
    switch (operation, value) {
    case (.not, _): .boolean(!isTrue(value))
    case (.minus, _): FilterNumber(value).map { (FilterNumber.whole(0) - $0).value } ?? .null
    case (.complement, _): FilterNumber(value)?.integer.map { .integer(~$0) } ?? .null
    }
  }

  private mutating func apply(
    _ operation: FilterBinary, _ left: JSONValue, _ right: JSONValue
  ) throws(TooManySteps) -> JSONValue {
    switch operation {
    case .equal: return .boolean(try isEqual(left, right))
    case .notEqual: return .boolean(!(try isEqual(left, right)))
    case .like:
      guard case .string(let text) = right else { return .boolean(false) }
      try take(text.utf8.count)
      return .boolean(try isLike(left, FilterPattern(text.utf8), text.utf8.count))
    case .contains: return .boolean(try contains(left, right))
    default: break
    }
    guard let a = FilterNumber(left), let b = FilterNumber(right) else {
      return operation.isComparison ? .boolean(false) : .null
    }
    switch operation {
    case .less: return .boolean(a < b)
    case .greater: return .boolean(b < a)
    case .lessOrEqual: return .boolean(a < b || a == b)
    case .greaterOrEqual: return .boolean(b < a || a == b)
    case .plus: return (a + b).value
    case .minus: return (a - b).value
    case .times: return (a * b).value
    case .divided: return (a / b).value
    case .remainder: return (a % b).value
    case .bitOr, .bitXor, .bitAnd:
      guard let a = a.integer, let b = b.integer else { return .null }
      return .integer(operation == .bitOr ? a | b : operation == .bitXor ? a ^ b : a & b)
    case .or, .and, .equal, .notEqual, .like, .contains:
      preconditionFailure("these operators do not take numbers alone")
    }
  }

  /// Numbers by their value, strings by their bytes; arrays and objects equal nothing.
  private mutating func isEqual(
    _ left: JSONValue, _ right: JSONValue
  ) throws(TooManySteps) -> Bool {
    switch (left, right) {
    case (.null, .null): return true
    case (.boolean(let a), .boolean(let b)): return a == b
    case (.string(let a), .string(let b)):
      guard a.utf8.count == b.utf8.count else { return false }
      try take(a.utf8.count)
      return a.utf8.elementsEqual(b.utf8)
    default:
      guard let a = FilterNumber(left), let b = FilterNumber(right) else { return false }
      return a == b
    }
  }

  /// A string that the pattern matches, or an array with one.
  private mutating func isLike(
    _ value: JSONValue, _ pattern: FilterPattern, _ patternByteCount: Int
  ) throws(TooManySteps) -> Bool {
    switch value {
    case .string(let text):
      try take(text.utf8.count + patternByteCount)
      return pattern.matches(text)
    case .array(let values):
      for value in values {
        try take(1)
        if case .string = value, try isLike(value, pattern, patternByteCount) { return true }
      }
      return false
    default: return false
    }
  }

  /// A string within a string, also the text of a number; or a value in an array.
  private mutating func contains(
    _ whole: JSONValue, _ part: JSONValue
  ) throws(TooManySteps) -> Bool {
    switch (whole, part) {
    case (.string(let text), .string(let part)):
      try take(text.utf8.count + part.utf8.count)
      return FilterPattern.end(of: Array(part.utf8), in: Array(text.utf8)[...]) != nil
    case (.string, .integer), (.string, .number):
      return try contains(whole, .string(part.text))
    case (.array(let values), _):
      for value in values {
        try take(1)
        if try isEqual(value, part) { return true }
      }
      return false
    default: return false
    }
  }
}
