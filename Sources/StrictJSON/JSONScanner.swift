/// Advances through a JSON text (RFC 8259) token by token, and checks it strictly.
///
/// The scanner keeps the open objects and arrays in a list instead of on the stack. It does not
/// compare the names of members, and does not limit numbers.
struct JSONScanner {
  /// A part of a text.
  enum Token: Equatable, Sendable {
    case beginObject
    case endObject
    case beginArray
    case endArray
    /// The name of a member. The scanner is already behind its colon.
    case name
    case string
    case number
    case boolean(Bool)
    case null
  }

  /// What the grammar demands next.
  private enum Expectation {
    case value
    case elementOrEnd
    case nameOrEnd
    /// A comma or the end of a container, or the end of the text.
    case separator
  }

  /// The text.
  let bytes: [UInt8]
  /// The bytes of the last token; those of a string or a name include the quotation marks.
  private(set) var range = 0..<0

  private let maximumDepth: Int
  private let acceptsHalfPairs: Bool
  private var position = 0
  private var expectation = Expectation.value
  /// The open containers, outermost first: true for an object.
  private var containers: [Bool] = []

  /// Checks that the text is UTF-8.
  ///
  /// - Parameters:
  ///   - maximumDepth: how many objects and arrays can be inside one another.
  ///   - acceptsHalfPairs: whether an escape can be half a surrogate pair, which the grammar of
  ///     RFC 8259 permits, but which is no character.
  /// - Throws: `byteOrderMark`, `notUTF8`.
  init(
    _ bytes: [UInt8], maximumDepth: Int, acceptsHalfPairs: Bool = false
  ) throws(JSONFault) {
    self.bytes = bytes
    self.maximumDepth = maximumDepth
    self.acceptsHalfPairs = acceptsHalfPairs
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { throw fault(.byteOrderMark) }
    do {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw JSONFault(reason: .notUTF8, offset: error.byteOffsets.lowerBound)
    }
    skipSpace()
  }

  /// How many objects and arrays are open.
  var depth: Int { containers.count }

  /// Whether the next token begins an object.
  var isAtObject: Bool { peek == UInt8(ascii: "{") && expectation == .value }

  /// Advances past one token; nil if the text ended with its value.
  ///
  /// - Throws: the first fault in the text. The scanner is of no use after it.
  mutating func next() throws(JSONFault) -> Token? {
    skipSpace()
    switch expectation {
    case .value: return try value()
    case .elementOrEnd: return take("]") ? close(.endArray) : try value()
    case .nameOrEnd: return take("}") ? close(.endObject) : try name()
    case .separator: break
    }
    guard let isObject = containers.last else {
      guard position == bytes.count else { throw fault(.trailingBytes) }
      return nil
    }
    if take(",") {
      skipSpace()
      return isObject ? try name() : try value()
    }
    guard take(isObject ? "}" : "]") else { throw fault(isObject ? .openObject : .openArray) }
    return close(isObject ? .endObject : .endArray)
  }

  /// Advances past a whole value, and returns its bytes without the white space around it.
  ///
  /// The next token must begin a value.
  mutating func skipValue() throws(JSONFault) -> Range<Int> {
    let outerDepth = depth
    _ = try next()
    let start = range.lowerBound
    while depth > outerDepth { _ = try next() }
    return start..<range.upperBound
  }

  /// Checks that nothing but white space follows the text's value.
  mutating func end() throws(JSONFault) { _ = try next() }

  private mutating func value() throws(JSONFault) -> Token {
    let start = position
    let token: Token
    switch peek ?? 0 {
    case UInt8(ascii: "{"): token = try open(.beginObject)
    case UInt8(ascii: "["): token = try open(.beginArray)
    case UInt8(ascii: "\""):
      try string()
      token = .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      try number()
      token = .number
    default: token = try word()
    }
    range = start..<position
    return token
  }

  private mutating func open(_ token: Token) throws(JSONFault) -> Token {
    guard depth < maximumDepth else { throw fault(.tooDeep) }
    position += 1
    containers.append(token == .beginObject)
    expectation = token == .beginObject ? .nameOrEnd : .elementOrEnd
    return token
  }

  private mutating func close(_ token: Token) -> Token {
    containers.removeLast()
    expectation = .separator
    range = position - 1..<position
    return token
  }

  private mutating func name() throws(JSONFault) -> Token {
    guard peek == UInt8(ascii: "\"") else { throw fault(.noName) }
    let start = position
    try string()
    range = start..<position
    skipSpace()
    guard take(":") else { throw fault(.noColon) }
    expectation = .value
    return .name
  }

  private mutating func word() throws(JSONFault) -> Token {
    expectation = .separator
    let rest = bytes[position...]
    for (word, token) in [
      ("null", Token.null), ("true", .boolean(true)), ("false", .boolean(false)),
    ]
    where rest.starts(with: word.utf8) {
      position += word.utf8.count
      return token
    }
    throw fault(.noValue)
  }

  private mutating func number() throws(JSONFault) {
    expectation = .separator
    _ = take("-")
    if take("0") {
      if isAtDigit { throw fault(.leadingZero) }
    } else {
      try digits()
    }
    if take(".") { try digits() }
    if take("e") || take("E") {
      if !take("+") { _ = take("-") }
      try digits()
    }
  }

  private mutating func digits() throws(JSONFault) {
    guard isAtDigit else { throw fault(.noDigits) }
    while isAtDigit { position += 1 }
  }

  private mutating func string() throws(JSONFault) {
    expectation = .separator
    position += 1
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        return
      case UInt8(ascii: "\\"): try escape()
      case 0..<0x20: throw fault(.controlCharacter)
      default: position += 1
      }
    }
    throw fault(.openString)
  }

  /// Advances past an escape, and past the second of a surrogate pair.
  private mutating func escape() throws(JSONFault) {
    let rest = bytes[(position + 1)...]
    guard let letter = rest.first else { throw fault(.openString) }
    if JSONText.escapedByte(letter) != nil {
      position += 2
      return
    }
    guard letter == UInt8(ascii: "u"), let unit = JSONText.codeUnit(rest.dropFirst()) else {
      throw fault(.unknownEscape)
    }
    if UTF16.isSurrogate(unit), !acceptsHalfPairs {
      guard JSONText.pair(unit, before: rest.dropFirst(5)) != nil else { throw fault(.halfPair) }
      position += 6
    }
    position += 6
  }

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private var isAtDigit: Bool {
    peek.map { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ?? false
  }

  private mutating func skipSpace() {
    while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      position += 1
    }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private func fault(_ reason: JSONFault.Reason) -> JSONFault {
    JSONFault(reason: reason, offset: position)
  }
}
