internal import Foundation

/// A moment as logs write it: `2026-01-31T08:00:00.000Z`.
struct UTCTime: Sendable, CustomStringConvertible {
  /// Since 1970.
  let milliseconds: Int64

  static var now: UTCTime {
    UTCTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }

  var description: String {
    var (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    if rest < 0 { (days, rest) = (days - 1, rest + 86_400_000) }
    let date = Self.date(days)
    let parts: [(Int64, Int, String)] = [
      (date.year, 4, "-"), (date.month, 2, "-"), (date.day, 2, "T"), (rest / 3_600_000, 2, ":"),
      (rest / 60_000 % 60, 2, ":"), (rest / 1000 % 60, 2, "."), (rest % 1000, 3, "Z"),
    ]
    return parts.map { number, width, end in
      let text = String(number)
      return String(repeating: "0", count: max(0, width - text.count)) + text + end
    }.joined()
  }

  /// The date of a day since 1970, after Howard Hinnant's `civil_from_days`.
  private static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (
      yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
      dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    )
  }
}
