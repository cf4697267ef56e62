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
