internal import ArgumentParser
internal import Foundation

/// Text for people, who read it on a terminal: names, reasons and paths in it can hold what a terminal obeys.
///
/// Escaped as `\u{1b}`: control characters (C0, DEL, C1), what sets the direction of text (Unicode's
/// `Bidi_Control`) and the separators of lines and paragraphs. A backslash stays as it is, so that text
/// which was escaped is escaped only once.
extension String {
  /// The text on one line: a newline and a tab are escaped, too.
  var onOneLine: String { escaped(keeping: []) }

  /// The text on its own lines: a newline and a tab stay.
  var onItsLines: String { escaped(keeping: ["\n", "\t"]) }

  private func escaped(keeping kept: Set<Unicode.Scalar>) -> String {
    guard unicodeScalars.contains(where: { $0.isObeyed && !kept.contains($0) }) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.isObeyed, !kept.contains(scalar) {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}

extension Unicode.Scalar {
  /// Whether a terminal, or the layout of text, does something else with it than to show it.
  fileprivate var isObeyed: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: properties.isBidiControl
    }
  }
}

/// Columns for people: a header line, then rows, padded to a common width; each cell stays on its line.
struct Table {
  private var rows: [[String]]

  init(header: [String]) {
    rows = [header]
  }

  mutating func append(_ row: [String]) {
    rows.append(row.map(\.onOneLine))
  }

  var text: String {
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        line += cell
        if column < row.count - 1 {
          line += String(repeating: " ", count: widths[column] - cell.count + 2)
        }
      }
      return line + "\n"
    }.joined()
  }
}

/// `--json`, on every command that reports: an object on one line.
///
/// Dates are RFC 3339 in UTC (``DateArgument/text``), time spans are numbers that say their unit in the name,
/// timetokens and rowids are strings, as they can be over 2^53.
struct ReportOptions: ParsableArguments {
  @Flag(name: .customLong("json"), help: "Report as one JSON object.")
  var isJSON = false

  /// Prints the report: one line of JSON, or what `text` makes for people.
  func print(_ report: some Encodable, text: () -> String) throws {
    guard isJSON else {
      try OutputDescriptor.standardOutput.writeAll(Array(text().onItsLines.utf8))
      return
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    let line = try encoder.encode(report) + [UInt8(ascii: "\n")]
    try OutputDescriptor.standardOutput.writeAll([UInt8](line))
  }
}

/// What a command that has nothing to report tells a person, and no program.
func confirm(_ text: String) throws(CommandFailure) {
  let output = OutputDescriptor.standardOutput
  if output.isTerminal { try output.writeAll(Array("\(text.onOneLine)\n".utf8)) }
}
