public import Foundation

/// The place of a message in the log: 17 digits, the time of its commit in units of 100 ns since
/// 1970.
///
/// Timetokens of one database are unique and rise with every message. If the wall clock jumps back,
/// they continue from the last one.
public struct Timetoken: Sendable, Hashable, Comparable, RawRepresentable, LosslessStringConvertible
{
  /// Units of 100 ns since 1970-01-01 00:00 UTC.
  public let rawValue: Int64

  /// The smallest timetoken, in September 2001; a clock before that date is raised to it.
  static let smallest = Timetoken(unchecked: 10_000_000_000_000_000)

  /// The largest number of 17 digits, in the year 2286.
  package static let greatest = Timetoken(unchecked: 99_999_999_999_999_999)

  /// Takes a number of 17 digits; any other gives nil.
  public init?(rawValue: Int64) {
    guard rawValue >= Self.smallest.rawValue, rawValue <= Self.greatest.rawValue else { return nil }
    self.rawValue = rawValue
  }

  /// The last place before `date`, from which a reader continues with the messages since then.
  ///
  /// A date before September 2001 gives the smallest timetoken, one after 2286 the greatest.
  public init(_ date: Date) {
    rawValue = min(
      max(WallTime.ticks(of: date), Self.smallest.rawValue), Self.greatest.rawValue)
  }

  /// When the message was committed, by the wall clock, or later if that clock has jumped back.
  ///
  /// A `Date` holds about 0.2 µs, a timetoken 0.1 µs.
  public var date: Date { WallTime.date(rawValue) }

  /// Takes a value from the database, or one computed from it.
  package init(unchecked rawValue: Int64) {
    self.rawValue = rawValue
  }

  /// The place directly before this one, as a bound: the one before the smallest timetoken is a number of 16 digits.
  package var previous: Timetoken { Timetoken(unchecked: rawValue - 1) }

  /// Reads exactly 17 decimal digits.
  public init?(_ description: String) {
    guard description.utf8.count == 17, description.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Int64(description)
    else { return nil }
    self.init(rawValue: number)
  }

  /// The 17 digits.
  public var description: String { String(rawValue) }

  /// Whether `a` was published before `b`.
  public static func < (a: Timetoken, b: Timetoken) -> Bool { a.rawValue < b.rawValue }
}
