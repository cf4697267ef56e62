/// A position in a JSON text (RFC 8259) that advances by one value, and checks it strictly.
///
/// It finds values as ranges of bytes, so that what surrounds a value stays as it was written.
struct JSONScanner {
  private static let maximumDepth = 512

  private let text: [UInt8]
  private var position = 0

  init(_ text: [UInt8]) { self.text = text }

  /// The only value of a text, without the white space around it.
  ///
  /// - Throws: a fault if the text is not one JSON value in UTF-8.
  static func value(in text: [UInt8]) throws(JSONFault) -> Range<Int> {
    try scan(text) { (scanner) throws(JSONFault) in try scanner.value(depth: 0) }
  }

  /// The value of a member of the text's outermost object; nil if there is no such object or member.
  ///
  /// - Throws: a fault if the text is not JSON, or has the member twice.
  static func member(_ name: String, in text: [UInt8]) throws(JSONFault) -> Range<Int>? {
    let name = Array(name.utf8)
    var found: Range<Int>?
    try scan(text) { (scanner) throws(JSONFault) in
      guard scanner.peek == UInt8(ascii: "{") else {
        _ = try scanner.value(depth: 0)
        return
      }
      try scanner.object(depth: 0) { (member, value) throws(JSONFault) in
        guard JSONString.decode(text[member]) == name else { return }
        guard found == nil else { throw JSONFault("it has the member twice") }
        found = value
      }
    }
    return found
  }

  /// Lets `body` advance past the text's value, and checks what is around it.
  private static func scan<R>(
    _ text: [UInt8], _ body: (inout JSONScanner) throws(JSONFault) -> R
  ) throws(JSONFault) -> R {
    guard (try? UTF8Span(validating: text.span)) != nil else { throw JSONFault("it is not UTF-8") }
    var scanner = JSONScanner(text)
    scanner.skipWhiteSpace()
    let result = try body(&scanner)
    scanner.skipWhiteSpace()
    guard scanner.position == text.count else { throw scanner.fault("something follows") }
    return result
  }

  private mutating func value(depth: Int) throws(JSONFault) -> Range<Int> {
    let start = position
    switch peek {
    case UInt8(ascii: "\""): try string()
    case UInt8(ascii: "{"): try object(depth: depth) { (_, _) throws(JSONFault) in }
    case UInt8(ascii: "["): try array(depth: depth)
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    default: try number()
    }
    return start..<position
  }

  /// Advances past an object; `body` gets each member's name, with quotation marks, and its value.
  private mutating func object(
    depth: Int, _ body: (Range<Int>, Range<Int>) throws(JSONFault) -> Void
  ) throws(JSONFault) {
    try enter(depth)
    if take("}") { return }
    repeat {
      skipWhiteSpace()
      let start = position
      try string()
      let name = start..<position
      skipWhiteSpace()
      try expect(":")
      skipWhiteSpace()
      try body(name, value(depth: depth + 1))
      skipWhiteSpace()
    } while take(",")
    try expect("}")
  }

  private mutating func array(depth: Int) throws(JSONFault) {
    try enter(depth)
    if take("]") { return }
    repeat {
      skipWhiteSpace()
      _ = try value(depth: depth + 1)
      skipWhiteSpace()
    } while take(",")
    try expect("]")
  }

  /// Advances past the first character of an object or an array, and the white space after it.
  private mutating func enter(_ depth: Int) throws(JSONFault) {
    guard depth < Self.maximumDepth else { throw fault("it is nested too deeply") }
    position += 1
    skipWhiteSpace()
  }

  private mutating func string() throws(JSONFault) {
    try expect("\"")
    while let byte = peek {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return
      case UInt8(ascii: "\\"): try escape()
      case 0..<0x20: throw fault("a control character in a string")
      default: break
      }
    }
    throw fault("a string has no end")
  }

  private mutating func escape() throws(JSONFault) {
    guard let letter = peek else { throw fault("a string has no end") }
    position += 1
    switch letter {
    case UInt8(ascii: "u"):
      for _ in 0..<4 {
        guard let digit = peek, JSONString.hexadecimalValue(digit) != nil else {
          throw fault("an invalid escape")
        }
        position += 1
      }
    case let letter where JSONString.isSimpleEscape(letter): break
    default: throw fault("an invalid escape")
    }
  }

  private mutating func number() throws(JSONFault) {
    _ = take("-")
    if !take("0") { try digits() }
    if take(".") { try digits() }
    if take("e") || take("E") {
      if !take("+") { _ = take("-") }
      try digits()
    }
  }

  private mutating func digits() throws(JSONFault) {
    let start = position
    while let byte = peek, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { position += 1 }
    guard position > start else { throw fault("a value is missing or invalid") }
  }

  private mutating func literal(_ word: StaticString) throws(JSONFault) {
    for character in word.description.unicodeScalars { try expect(character) }
  }

  private mutating func skipWhiteSpace() {
    while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      position += 1
    }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ character: Unicode.Scalar) throws(JSONFault) {
    guard take(character) else { throw fault("\(character) is missing") }
  }

  private var peek: UInt8? { position < text.count ? text[position] : nil }

  private func fault(_ reason: String) -> JSONFault { JSONFault("\(reason) (byte \(position))") }
}

/// The reason why a text is not JSON, without any of its contents.
struct JSONFault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
