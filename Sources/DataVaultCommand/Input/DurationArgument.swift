internal import ArgumentParser

/// A time span with its unit: `500ms`, `30s`, `15m`, `2h`, `7d`.
struct DurationArgument: ExpressibleByArgument {
  static let standardLease = DurationArgument(.seconds(30), "30s")
  static let standardSession = DurationArgument(.seconds(900), "15m")

  let duration: Duration
  private let text: String

  private init(_ duration: Duration, _ text: String) {
    self.duration = duration
    self.text = text
  }

  /// What the default looks like in the help.
  var defaultValueDescription: String { text }

  init?(argument: String) {
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
