/// A text of a server in a form that can be shown: one line, of bounded length, without characters that change how the
/// text around it looks.
package struct EscapedText {
  /// The most characters of the original that are shown, unless a caller says otherwise.
  static let maximumCount = 100

  package let text: String

  /// Escapes control characters, line breaks, bidirectional and other invisible characters as `\u{...}`, and the
  /// characters `\` and `"` by a backslash.
  package init(_ original: String, maximumCount: Int = EscapedText.maximumCount) {
    var text = ""
    var markCount = 0
    for scalar in original.unicodeScalars.prefix(maximumCount) {
      if scalar == "\\" || scalar == "\"" {
        text += "\\\(scalar)"
      } else if Self.isShown(scalar, after: markCount) {
        text.unicodeScalars.append(scalar)
      } else {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      }
      markCount = Self.isMark(scalar) ? markCount + 1 : 0
    }
    self.text = original.unicodeScalars.count > maximumCount ? text + "..." : text
  }

  /// The most marks on a letter: more of them cover the lines above and below.
  private static let maximumMarkCount = 2

  private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    [.nonspacingMark, .spacingMark, .enclosingMark].contains(scalar.properties.generalCategory)
  }

  private static func isShown(_ scalar: Unicode.Scalar, after markCount: Int) -> Bool {
    if scalar == " " { return true }
    if isMark(scalar), markCount >= maximumMarkCount { return false }
    if scalar.properties.isDefaultIgnorableCodePoint { return false }
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
      .paragraphSeparator,
      .spaceSeparator:
      return false
    default: return true
    }
  }
}
