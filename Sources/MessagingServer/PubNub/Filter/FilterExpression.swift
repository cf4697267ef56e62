internal import StrictJSON

/// A subscriber's filter (`filter-expr`): which messages it gets.
///
/// The language is PubNub's; docs/reference/pubnub-filters.md has its grammar and what each operator does. A filter is
/// parsed once and evaluated for each message, in bounded time.
struct FilterExpression: Sendable {
  /// The longest text, in bytes.
  static let maximumByteCount = 4_096
  /// The most parentheses and unary operators around one another.
  static let maximumDepth = 32
  /// The most operands, operators and steps of paths.
  static let maximumNodeCount = 256
  /// The most steps of one evaluation: parts of the filter, bytes that are compared, members and elements that are
  /// passed.
  static let maximumStepCount = 1 << 18
  /// After so many steps, another subscriber's filter has its turn.
  static let sliceStepCount = 1 << 16

  private let root: FilterNode?
  /// Whether an evaluation reads the payload, so that the caller has to parse it.
  let readsPayload: Bool

  /// Parses a filter; an empty one matches every message.
  ///
  /// - Throws: the first fault.
  init(_ text: String) throws(FilterFault) {
    var parser = FilterParser(text)
    root = try parser.parse()
    readsPayload = parser.readsPayload
  }

  /// Whether the filter is true for a message; false if the evaluation needs too many steps.
  ///
  /// - Parameters:
  ///   - payload: the message; null if it is no JSON or ``readsPayload`` is false.
  ///   - meta: what the publisher said about the message; null if nothing.
  ///   - stepCount: reduced by the steps of this evaluation.
  func matches(payload: JSONValue, meta: JSONValue, _ stepCount: inout Int) -> Bool {
    guard let root else { return true }
    var evaluation = FilterEvaluation(
      payload: payload, meta: meta, remainingStepCount: Self.maximumStepCount)
    defer { stepCount -= Self.maximumStepCount - evaluation.remainingStepCount }
    do throws(FilterEvaluation.TooManySteps) {
      return FilterEvaluation.isTrue(try evaluation.value(of: root))
    } catch {
      return false
    }
  }
}

/// Why a text is no filter, and where.
struct FilterFault: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong.
  enum Reason: Sendable, Hashable {
    case tooLong, tooDeep, tooManyNodes
    case missingOperand, missingOperator, missingParenthesis, missingBracket
    case missingName, invalidIndex, unterminatedText, invalidNumber
    /// A comparison of a comparison, such as `1 < a < 3`.
    case chainedComparison
  }

  let reason: Reason
  /// The byte of the text.
  let offset: Int

  /// What is wrong and where, without the text.
  var description: String {
    let what =
      switch reason {
      case .tooLong: "is longer than \(FilterExpression.maximumByteCount) bytes"
      case .tooDeep: "has more than \(FilterExpression.maximumDepth) levels"
      case .tooManyNodes:
        "has more than \(FilterExpression.maximumNodeCount) operands and operators"
      case .missingOperand: "lacks a value"
      case .missingOperator: "lacks an operator"
      case .missingParenthesis: "lacks a closing parenthesis"
      case .missingBracket: "lacks a closing bracket"
      case .missingName: "lacks a name behind a dot"
      case .invalidIndex: "has an index that is neither a string nor a number"
      case .unterminatedText: "has a string without end"
      case .invalidNumber: "has an invalid number"
      case .chainedComparison: "compares a comparison: use parentheses or &&"
      }
    return "the filter expression \(what), at byte \(offset)"
  }
}
