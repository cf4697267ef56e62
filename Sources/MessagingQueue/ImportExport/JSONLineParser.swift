/// Parses one line of JSON, from its first byte to its last.
struct JSONLineParser {
  /// How deep objects and arrays can be nested.
  static let maximumDepth = 32

  private let bytes: [UInt8]
  private var position = 0

  init(_ line: [UInt8]) {
    bytes = line
  }

  mutating func line() throws(JSONFault) -> [(name: String, value: JSONValue)] {
    guard !bytes.starts(with: [0xEF, 0xBB, 0xBF]) else {
      throw fault("begins with a byte order mark")
    }
    skipSpace()
    guard peek == UInt8(ascii: "{") else { throw fault("is not a JSON object") }
    let members = try object(depth: 1)
    skipSpace()
    guard position == bytes.count else { throw fault("goes on after its JSON object") }
    return members
  }

  private mutating func value(depth: Int) throws(JSONFault) -> JSONValue {
    guard depth <= Self.maximumDepth else { throw fault("is nested too deep") }
    switch peek ?? 0 {
    case UInt8(ascii: "{"): return .object(try object(depth: depth))
    case UInt8(ascii: "["): return .array(try array(depth: depth))
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
    default:
      if take("null") { return .null }
      if take("true") { return .boolean(true) }
      if take("false") { return .boolean(false) }
      throw fault("lacks a value")
    }
  }

  private mutating func object(
    depth: Int
  ) throws(JSONFault) -> [(name: String, value: JSONValue)] {
    position += 1
    skipSpace()
    var members: [(name: String, value: JSONValue)] = []
    if takeByte("}") { return members }
    var names: Set<[UInt8]> = []
    repeat {
      skipSpace()
      guard peek == UInt8(ascii: "\"") else { throw fault("lacks the name of a member") }
      let name = try string()
      // By their bytes: names that only look alike are different names.
      guard names.insert(Array(name.utf8)).inserted else { throw fault("has a member twice") }
      skipSpace()
      guard takeByte(":") else { throw fault("lacks a colon") }
      skipSpace()
      members.append((name, try value(depth: depth + 1)))
      skipSpace()
    } while takeByte(",")
    guard takeByte("}") else { throw fault("has an object without end") }
    return members
  }

  private mutating func array(depth: Int) throws(JSONFault) -> [JSONValue] {
    position += 1
    skipSpace()
    var values: [JSONValue] = []
    if takeByte("]") { return values }
    repeat {
      skipSpace()
      values.append(try value(depth: depth + 1))
      skipSpace()
    } while takeByte(",")
    guard takeByte("]") else { throw fault("has an array without end") }
    return values
  }

  /// A number as RFC 8259 defines it: no plus sign, no leading zero, digits on both sides of a
  /// point.
  private mutating func number() throws(JSONFault) -> String {
    let start = position
    _ = takeByte("-")
    if !takeByte("0") { try digits() }
    if takeByte(".") { try digits() }
    if takeByte("e") || takeByte("E") {
      if !takeByte("+") { _ = takeByte("-") }
      try digits()
    }
    if isAtDigit { throw fault("has a number with a leading zero") }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Copies runs between escapes unchanged.
  private mutating func string() throws(JSONFault) -> String {
    position += 1
    var text: [UInt8] = []
    var start = position
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "\""):
        let run = bytes[start..<position]
        position += 1
        let whole = text.isEmpty ? Array(run) : text + run
        guard let string = String(validating: whole, as: UTF8.self) else {
          throw fault("has a string that is not UTF-8")
        }
        return string
      case UInt8(ascii: "\\"):
        text += bytes[start..<position]
        text += String(try escape()).utf8
        start = position
      case 0..<0x20: throw fault("has a control character in a string")
      default: position += 1
      }
    }
    throw fault("has a string without end")
  }

  private mutating func escape() throws(JSONFault) -> Unicode.Scalar {
    position += 1
    defer { position += 1 }
    switch peek {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try unicodeEscape()
    default: throw fault("has an escape that does not exist")
    }
  }

  /// Leaves the position at the last digit.
  private mutating func unicodeEscape() throws(JSONFault) -> Unicode.Scalar {
    let unit = try codeUnit()
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard UTF16.isLeadSurrogate(unit), position + 2 < bytes.count,
      bytes[position + 1] == UInt8(ascii: "\\"), bytes[position + 2] == UInt8(ascii: "u")
    else { throw fault("has half a surrogate pair") }
    position += 2
    let trail = try codeUnit()
    guard UTF16.isTrailSurrogate(trail),
      let scalar = Unicode.Scalar(
        0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(trail & 0x3FF)))
    else { throw fault("has half a surrogate pair") }
    return scalar
  }

  /// Reads four digits after the `u` at the position, and stops at the last.
  private mutating func codeUnit() throws(JSONFault) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      position += 1
      guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80
      else { throw fault("has an escape that does not exist") }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A {
      position += 1
    }
  }

  private mutating func takeByte(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private var isAtDigit: Bool {
    peek.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
  }

  private mutating func digits() throws(JSONFault) {
    guard isAtDigit else { throw fault("has a number without digits") }
    while isAtDigit { position += 1 }
  }

  private mutating func take(_ word: String) -> Bool {
    guard bytes[position...].starts(with: word.utf8) else { return false }
    position += word.utf8.count
    return true
  }

  private func fault(_ reason: String) -> JSONFault {
    JSONFault(reason: reason, column: position + 1)
  }
}

/// A JSON object on one line, read strictly by RFC 8259.
///
/// The parser refuses everything that readers of JSON interpret differently: two members with one
/// name, trailing commas, a byte order mark, bytes that are not UTF-8, half a surrogate pair, bytes
/// after the object, and nesting deeper than ``JSONLineParser/maximumDepth``.
package struct JSONLine: Sendable {
  /// The members in their order, each name once.
  package let members: [(name: String, value: JSONValue)]

  /// Reads a line without its newline.
  ///
  /// - Throws: ``JSONFault``, which never quotes what it found.
  package init(_ line: [UInt8]) throws(JSONFault) {
    var parser = JSONLineParser(line)
    members = try parser.line()
  }

  /// Whether a line is nothing but white space.
  package static func isBlank(_ line: [UInt8]) -> Bool {
    line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
  }

  /// A member that exists and is not null.
  package subscript(name: String) -> JSONValue? {
    guard let value = members.first(where: { $0.name.utf8.elementsEqual(name.utf8) })?.value
    else { return nil }
    if case .null = value { return nil }
    return value
  }
}

/// A value of JSON.
package indirect enum JSONValue: Sendable {
  case null
  case boolean(Bool)
  /// The number as it is in the text; the caller converts it.
  case number(String)
  case string(String)
  case array([JSONValue])
  /// Each name once.
  case object([(name: String, value: JSONValue)])

  /// The text of a string.
  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// A whole number without fraction or exponent.
  package var wholeNumber: Int? { if case .number(let text) = self { Int(text) } else { nil } }

  /// True or false.
  package var truth: Bool? { if case .boolean(let value) = self { value } else { nil } }

  /// The elements of an array.
  package var elements: [JSONValue]? { if case .array(let values) = self { values } else { nil } }

  /// The members of an object.
  package var members: [(name: String, value: JSONValue)]? {
    if case .object(let members) = self { members } else { nil }
  }
}

/// Why a line is not a JSON object: the end of a sentence about the line, without a byte of its
/// contents.
package struct JSONFault: Error, Sendable, CustomStringConvertible {
  /// The reason.
  package let reason: String
  /// The byte of the line where the fault was noticed; the first is 1.
  package let column: Int

  /// The reason and the place.
  package var description: String { "\(reason) at byte \(column)" }
}
