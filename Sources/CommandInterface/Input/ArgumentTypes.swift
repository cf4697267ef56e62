internal import ArgumentParser
internal import Foundation

/// A date in RFC 3339 format with a resolution of 100 ns: `2026-11-21T08:15:00Z`,
/// `2026-11-21T09:15:00.5+01:00`.
package struct DateArgument: ExpressibleByArgument {
  /// Units of 100 ns since 1970.
  package let ticks: Int64

  /// A date of so many units of 100 ns since 1970.
  package init(ticks: Int64) {
    self.ticks = ticks
  }

  /// Parses a date.
  ///
  /// Nil if the text has another format, or names a day that does not exist.
  package init?(argument: String) {
    let pattern =
      /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))/
      .asciiOnlyDigits()
    guard let match = argument.wholeMatch(of: pattern),
      let date = try? Self.style.parse("\(match.1)Z"),
      Self.style.format(date) == "\(match.1)Z"
    else { return nil }
    var seconds = Int64(date.timeIntervalSince1970)
    if let sign = match.3, let hours = match.4.flatMap({ Int64($0) }),
      let minutes = match.5.flatMap({ Int64($0) })
    {
      seconds -= (sign == "-" ? -1 : 1) * (hours * 3600 + minutes * 60)
    }
    let digits = (match.2.map(String.init) ?? "").padding(toLength: 7, withPad: "0", startingAt: 0)
    guard let fraction = Int64(digits), seconds >= 0 else { return nil }
    ticks = seconds * 10_000_000 + fraction
  }

  /// The date as RFC 3339 text.
  ///
  /// Parsing the text returns the same date.
  package var text: String {
    let date = Date(timeIntervalSince1970: Double(ticks / 10_000_000))
    let fraction = ticks % 10_000_000
    let start = Self.style.format(date).dropLast()
    if fraction == 0 { return "\(start)Z" }
    var digits = String(10_000_000 + fraction).dropFirst()
    while digits.last == "0" { digits.removeLast() }
    return "\(start).\(digits)Z"
  }

  private static let style = Date.ISO8601FormatStyle()
}

/// A duration with its unit: `500ms`, `30s`, `15m`, `2h`, `7d`.
package struct DurationArgument: ExpressibleByArgument {
  /// The duration without its text.
  package let duration: Duration
  private let text: String

  /// A default.
  ///
  /// - Parameter text: how the help shows it.
  package init(_ duration: Duration, _ text: String) {
    self.duration = duration
    self.text = text
  }

  /// The default as the help shows it.
  package var defaultValueDescription: String { text }

  /// Parses a duration; nil without a known unit, or above 10^9 units.
  package init?(argument: String) {
    text = argument
    let digits = argument.prefix { $0.isASCII && $0.isNumber }
    guard let number = Int64(digits), number <= 1_000_000_000 else { return nil }
    switch argument.dropFirst(digits.count) {
    case "ms": duration = .milliseconds(number)
    case "s": duration = .seconds(number)
    case "m": duration = .seconds(number * 60)
    case "h": duration = .seconds(number * 3600)
    case "d": duration = .seconds(number * 86_400)
    default: return nil
    }
  }
}
