public import Foundation

/// A place in the log of a server: the time of a message, in units of 100 ns since 1970.
public struct Timetoken: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// Units of 100 ns since 1970.
  public let rawValue: Int64

  /// Nil for a negative number.
  public init?(rawValue: Int64) {
    guard rawValue >= 0 else { return nil }
    self.rawValue = rawValue
  }

  /// Nil for a text that is no number.
  init?(_ text: String?) {
    guard let text, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(text)
    else { return nil }
    self.init(rawValue: number)
  }

  /// The time.
  public var date: Date { Date(timeIntervalSince1970: Double(rawValue) / 10_000_000) }

  /// The number.
  public var description: String { String(rawValue) }

  /// Whether one place is before another.
  public static func < (left: Timetoken, right: Timetoken) -> Bool {
    left.rawValue < right.rawValue
  }
}
