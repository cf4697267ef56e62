/// Why a text is not JSON, or not the JSON that was asked for, without a byte of its contents.
package struct JSONFault: Error, Hashable, CustomStringConvertible {
  /// The end of a sentence about the text.
  package enum Reason: String, Sendable {
    case byteOrderMark = "begins with a byte order mark"
    case notUTF8 = "is not UTF-8"
    case notAnObject = "is not a JSON object"
    case trailingBytes = "goes on after its JSON value"
    case tooDeep = "is nested too deep"
    case noValue = "lacks a value"
    case noName = "lacks the name of a member"
    case noColon = "lacks a colon"
    case openObject = "has an object without end"
    case openArray = "has an array without end"
    case openString = "has a string without end"
    case controlCharacter = "has a control character in a string"
    case unknownEscape = "has an escape that does not exist"
    case halfPair = "has half a surrogate pair"
    case noDigits = "has a number without digits"
    case leadingZero = "has a number with a leading zero"
    case numberOutOfRange = "has a number out of range"
    case memberTwice = "has a member twice"
  }

  /// The reason.
  package let reason: Reason
  /// The byte where the fault was noticed; the first is 0.
  package let offset: Int

  package init(reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// The end of a sentence about the text, with the number of the byte; the first is 1.
  package var description: String { "\(reason.rawValue) at byte \(offset + 1)" }
}
