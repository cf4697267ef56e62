/// A JSON reader without copies: it splits a range of bytes into the ranges of its parts.
///
/// It accepts the JSON of `docs/reference/vault-format.md`: no white space, named members in a fixed order,
/// at most 8 levels, whole numbers.
enum JSONText {
  static let maximumDepth = 8
  static let maximumNumber = 1 << 53 - 1

  /// The values of an object whose members must be exactly these, in this order.
  static func members(
    _ names: [String], in bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> [Range<Int>] {
    var values: [Range<Int>] = []
    try forEachMember(in: bytes, range, of: part) { (name, value) throws(FormatFault) in
      guard values.count < names.count, bytes.equals(names[values.count].utf8, in: name) else {
        throw FormatFault(part, "a member is unknown, misplaced or repeated")
      }
      values.append(value)
    }
    guard values.count == names.count else {
      throw FormatFault(part, "the member \(names[values.count]) is missing")
    }
    return values
  }

  /// Calls `body` with each member's name, without its quotation marks and still escaped, and its
  /// value.
  static func forEachMember(
    in bytes: RawSpan, _ range: Range<Int>, of part: String,
    _ body: (_ name: Range<Int>, _ value: Range<Int>) throws(FormatFault) -> Void
  ) throws(FormatFault) {
    var scanner = JSONScanner(part: part, range: range)
    try scanner.expect("{", in: bytes)
    if !scanner.take("}", in: bytes) {
      repeat {
        let name = try scanner.string(in: bytes)
        try scanner.expect(":", in: bytes)
        let value = try scanner.value(in: bytes, depth: 1)
        try body(name, value)
      } while scanner.take(",", in: bytes)
      try scanner.expect("}", in: bytes)
    }
    try scanner.expectEnd()
  }

  /// The elements of an array, of which there must be at most `maximumCount`.
  static func elements(
    in bytes: RawSpan, _ range: Range<Int>, maximumCount: Int, of part: String
  ) throws(FormatFault) -> [Range<Int>] {
    var scanner = JSONScanner(part: part, range: range)
    var elements: [Range<Int>] = []
    try scanner.expect("[", in: bytes)
    if !scanner.take("]", in: bytes) {
      repeat {
        guard elements.count < maximumCount else {
          throw FormatFault(part, "more than \(maximumCount) elements")
        }
        elements.append(try scanner.value(in: bytes, depth: 1))
      } while scanner.take(",", in: bytes)
      try scanner.expect("]", in: bytes)
    }
    try scanner.expectEnd()
    return elements
  }

  /// The range between the quotation marks of a string, which can contain escapes.
  ///
  /// - Parameter range: a value that the scanner has found, so that its first byte determines its
  ///   type.
  static func escapedString(
    in bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Range<Int> {
    guard range.count >= 2, bytes.byte(range.lowerBound) == UInt8(ascii: "\"") else {
      throw FormatFault(part, "not a string")
    }
    return range.lowerBound + 1..<range.upperBound - 1
  }

  /// The range between the quotation marks of a string, which must not contain escapes.
  static func plainString(
    in bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Range<Int> {
    let contents = try escapedString(in: bytes, range, of: part)
    for offset in contents where bytes.byte(offset) == UInt8(ascii: "\\") {
      throw FormatFault(part, "an escape in a string that must not have one")
    }
    return contents
  }

  /// A whole number from 0 to 2^53 - 1 in its shortest form.
  static func number(
    in bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Int {
    var number = 0
    guard !range.isEmpty, range.count == 1 || bytes.byte(range.lowerBound) != UInt8(ascii: "0")
    else { throw FormatFault(part, "not a number in its shortest form") }
    for offset in range {
      let byte = bytes.byte(offset)
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else {
        throw FormatFault(part, "not a whole number")
      }
      number = number * 10 + Int(byte - UInt8(ascii: "0"))
      guard number <= maximumNumber else { throw FormatFault(part, "a number is too large") }
    }
    return number
  }

  static func boolean(
    in bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Bool {
    if bytes.equals("true".utf8, in: range) { return true }
    if bytes.equals("false".utf8, in: range) { return false }
    throw FormatFault(part, "neither true nor false")
  }

  static func isNull(in bytes: RawSpan, _ range: Range<Int>) -> Bool {
    bytes.equals("null".utf8, in: range)
  }
}
