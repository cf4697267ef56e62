internal import ArgumentParser
internal import Foundation

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
