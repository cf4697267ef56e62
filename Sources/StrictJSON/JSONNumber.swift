/// A number that keeps its text, so that it is written as it was read: `1.10`, `12345678901234567890`.
///
/// Two numbers are the same if their texts are the same.
public struct JSONNumber: Sendable, Hashable {
  /// The number as JSON writes it.
  public let text: String

  /// The nearest Double, which is finite.
  public var double: Double { Double(text) ?? 0 }

  /// A number in the grammar of JSON; nil if no Double holds it.
  init?(checked text: String) {
    guard let number = Double(text), number.isFinite else { return nil }
    self.text = text
  }

  /// A finite number, in the shortest text that gives it; nil for another.
  public init?(_ number: Double) {
    guard number.isFinite else { return nil }
    text = "\(number)"
  }
}

extension JSONNumber: ExpressibleByFloatLiteral {
  /// A finite number.
  public init(floatLiteral number: Double) {
    precondition(number.isFinite, "JSON has no number \(number)")
    text = "\(number)"
  }
}
