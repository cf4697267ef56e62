internal import ArgumentParser
internal import Foundation

/// Escapes text for a terminal: names, reasons and paths can contain characters that control it.
///
/// Escaped as `\u{1b}` are control characters (C0, DEL, C1), characters that set the direction of
/// text (Unicode's `Bidi_Control`) and the separators of lines and paragraphs. A backslash stays as
/// it is: escaping an escaped text therefore changes nothing.
extension String {
  /// The text on one line: newlines and tabs are escaped too.
  package var onOneLine: String { escaped(keeping: []) }

  /// The text with its lines: newlines and tabs stay.
  package var onItsLines: String { escaped(keeping: ["\n", "\t"]) }

  private func escaped(keeping kept: Set<Unicode.Scalar>) -> String {
    guard unicodeScalars.contains(where: { $0.controlsTerminal && !kept.contains($0) }) else {
      return self
    }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.controlsTerminal, !kept.contains(scalar) {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}

extension Unicode.Scalar {
  /// Whether the character controls the terminal or the layout of text.
  fileprivate var controlsTerminal: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: properties.isBidiControl
    }
  }
}

/// A table for people: a header line, then rows, padded to common widths.
///
/// Each cell stays on its line.
package func table(_ header: [String], _ rows: [[String]]) -> String {
  let rows = [header] + rows.map { $0.map(\.onOneLine) }
  let widths = header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
  return rows.map { row in
    let padded = zip(row, widths).dropLast().map { cell, width in
      cell + String(repeating: " ", count: width - cell.count + 2)
    }
    return padded.joined() + (row.last ?? "") + "\n"
  }.joined()
}

/// The option `--json` of every command that reports: one JSON object on one line.
///
/// Dates are RFC 3339 in UTC (``DateArgument/text``). Durations are numbers whose name ends in the
/// unit. Timetokens and rowids are strings, because they can be greater than 2^53.
package struct ReportOptions: ParsableArguments {
  /// Whether the report is one JSON object.
  @Flag(name: .customLong("json"), help: "Print the report as one JSON object.")
  package var isJSON = false

  /// Creates the options without values, for the parser.
  package init() {}

  /// Prints the report as one line of JSON, or as the text that `text` returns.
  package func print(_ report: some Encodable, text: () -> String) throws {
    guard isJSON else {
      try OutputDescriptor.standardOutput.writeAll(Array(text().onItsLines.utf8))
      return
    }
    try OutputDescriptor.standardOutput.writeAll(Self.encoded(report) + [UInt8(ascii: "\n")])
  }

  /// A report as one JSON object, without a newline.
  package static func encoded(_ report: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return [UInt8](try encoder.encode(report))
  }
}

/// Prints a confirmation, but only to a terminal and not at the level `quiet`: programs read the exit code.
package func confirm(_ text: String) throws(CommandFailure) {
  let output = OutputDescriptor.standardOutput
  if output.isTerminal, OutputLevel.current != .quiet {
    try output.writeAll(Array("\(text.onOneLine)\n".utf8))
  }
}

/// Sizes and ages for people.
package enum PeopleText {
  /// A size of three digits with a binary unit, such as "1.4 MiB".
  package static func size(byteCount: Int) -> String {
    var (value, units) = (Double(byteCount), ["KiB", "MiB", "GiB", "TiB", "PiB"][...])
    guard value >= 1024 else { return "\(byteCount) B" }
    var unit = ""
    while value >= 1024, let next = units.popFirst() {
      value /= 1024
      unit = next
    }
    let digits = value < 10 ? 2 : value < 100 ? 1 : 0
    return "\(decimal(value, digits: digits)) \(unit)"
  }

  /// The time since a moment, such as "0.25 s".
  package static func seconds(since start: ContinuousClock.Instant) -> String {
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    return "\(decimal(seconds, digits: 2)) s"
  }

  /// A time of at most two units, such as "2h 5m".
  package static func age(seconds: Int64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60)
    return switch (days, hours, minutes) {
    case (1..., _, _): "\(days)d \(hours)h"
    case (0, 1..., _): "\(hours)h \(minutes)m"
    case (0, 0, 1...): "\(minutes)m \(seconds % 60)s"
    default: "\(seconds)s"
    }
  }

  /// A number with a fixed count of digits after the point; a format style would open ICU's data.
  private static func decimal(_ value: Double, digits: Int) -> String {
    String(format: "%.*f", digits, value)
  }
}
