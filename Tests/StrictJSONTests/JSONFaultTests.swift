import StrictJSON
import TestSupport
import Testing

/// Texts with exactly one fault each.
@Suite struct JSONFaultTests {
  struct Fault: CustomTestStringConvertible, Sendable {
    let name: String
    let bytes: [UInt8]
    let reason: JSONFault.Reason

    init(_ name: String, _ text: String, _ reason: JSONFault.Reason) {
      self.init(name, Array(text.utf8), reason)
    }

    init(_ name: String, _ bytes: [UInt8], _ reason: JSONFault.Reason) {
      (self.name, self.bytes, self.reason) = (name, bytes, reason)
    }

    var testDescription: String { name }
  }

  /// Faults in the grammar of RFC 8259.
  static let grammar = [
    Fault("an empty text", "", .noValue),
    Fault("white space alone", " \t\r\n", .noValue),
    Fault("a byte order mark", "\u{FEFF}1", .byteOrderMark),
    Fault("a no-break space", "\u{A0}1", .noValue),
    Fault("a form feed as white space", "\u{C}1", .noValue),
    Fault("a comment", "/**/1", .noValue),
    Fault("a comment at the end", "1//", .trailingBytes),
    Fault("a second value", "1 2", .trailingBytes),
    Fault("a second object", "{}{}", .trailingBytes),
    Fault("a comma at the end", "1,", .trailingBytes),
    Fault("a zero byte at the end", "1\0", .trailingBytes),
    Fault("an end without a beginning", "]", .noValue),

    Fault("a word that is cut off", "nul", .noValue),
    Fault("a word that goes on", "nulll", .trailingBytes),
    Fault("a word in upper case", "True", .noValue),
    Fault("not a number", "NaN", .noValue),
    Fault("infinity", "Infinity", .noValue),
    Fault("negative infinity", "-Infinity", .noDigits),
    Fault("a word without quotation marks", "[a]", .noValue),

    Fault("a leading zero", "01", .leadingZero),
    Fault("a leading zero behind a sign", "-00", .leadingZero),
    Fault("a sign alone", "-", .noDigits),
    Fault("a plus sign", "+1", .noValue),
    Fault("a point at the end", "1.", .noDigits),
    Fault("a point at the beginning", ".5", .noValue),
    Fault("a point before an exponent", "1.e1", .noDigits),
    Fault("an exponent without digits", "1e", .noDigits),
    Fault("an exponent with a sign alone", "1e+", .noDigits),
    Fault("two signs in an exponent", "1e+-1", .noDigits),
    Fault("a fraction in an exponent", "1e1.5", .trailingBytes),
    Fault("a hexadecimal number", "0x1", .trailingBytes),
    Fault("a space in a number", "1 .5", .trailingBytes),
    Fault("a full-width digit", "\u{FF11}", .noValue),

    Fault("an apostrophe", "'a'", .noValue),
    Fault("a string without end", "\"a", .openString),
    Fault("a quotation mark alone", "\"", .openString),
    Fault("a string that ends in a backslash", #""\"#, .openString),
    Fault("an escaped quotation mark at the end", #""\""#, .openString),
    Fault("an unknown escape", #""\x""#, .unknownEscape),
    Fault("an escape in upper case", #""\N""#, .unknownEscape),
    Fault("an escape of a character", #""\é""#, .unknownEscape),
    Fault("a code unit of two digits", #""\u12""#, .unknownEscape),
    Fault("a code unit at the end", #""\u12"#, .unknownEscape),
    Fault("a code unit with another letter", #""\u12g4""#, .unknownEscape),
    Fault("a code unit with a sign", #""\u+123""#, .unknownEscape),
    Fault("a line feed in a string", "\"\n\"", .controlCharacter),
    Fault("a tabulator in a string", "\"\t\"", .controlCharacter),
    Fault("a zero byte in a string", "\"\0\"", .controlCharacter),
    Fault("the last control character in a string", "\"\u{1F}\"", .controlCharacter),
    Fault("a control character in a name", "{\"\u{1}\":1}", .controlCharacter),

    Fault("an array without end", "[", .noValue),
    Fault("an array without end behind a value", "[1", .openArray),
    Fault("an array without end behind a comma", "[1,", .noValue),
    Fault("a comma at the end of an array", "[1,]", .noValue),
    Fault("a comma at the beginning of an array", "[,1]", .noValue),
    Fault("two commas in an array", "[1,,2]", .noValue),
    Fault("no comma in an array", "[1 2]", .openArray),
    Fault("a colon in an array", "[1:2]", .openArray),
    Fault("an array that ends as an object", "[1}", .openArray),
    Fault("an object without end", "{", .noName),
    Fault("an object without end behind a name", #"{"a""#, .noColon),
    Fault("an object without end behind a colon", #"{"a":"#, .noValue),
    Fault("an object without end behind a value", #"{"a":1"#, .openObject),
    Fault("a comma at the end of an object", #"{"a":1,}"#, .noName),
    Fault("a comma alone in an object", "{,}", .noName),
    Fault("no comma in an object", #"{"a":1 "b":2}"#, .openObject),
    Fault("no colon in an object", #"{"a" 1}"#, .noColon),
    Fault("no value in an object", #"{"a":}"#, .noValue),
    Fault("a name without quotation marks", "{a:1}", .noName),
    Fault("a number as a name", "{1:1}", .noName),
    Fault("an object that ends as an array", #"{"a":1]"#, .openObject),

    Fault("a byte that UTF-8 does not have", [0x22, 0xFF, 0x22], .notUTF8),
    Fault("a continuation alone", [0x22, 0x80, 0x22], .notUTF8),
    Fault("a character that is cut off", [0x22, 0xC3, 0x22], .notUTF8),
    Fault("an overlong zero", [0x22, 0xC0, 0x80, 0x22], .notUTF8),
    Fault("an overlong slash", [0x22, 0xE0, 0x80, 0xAF, 0x22], .notUTF8),
    Fault("a surrogate in UTF-8", [0x22, 0xED, 0xA0, 0x80, 0x22], .notUTF8),
    Fault("a character above the last", [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], .notUTF8),
    Fault("a byte outside of strings", [0x31, 0xA0], .notUTF8),
    Fault("UTF-16", [0x31, 0x00], .trailingBytes),
  ]

  /// Halves of surrogate pairs, which the grammar permits.
  static let halfPairs = [
    Fault("a first half alone", #""\ud800""#, .halfPair),
    Fault("a second half alone", #""\uDC00""#, .halfPair),
    Fault("a first half before a character", #""\uD800\u0041""#, .halfPair),
    Fault("a first half before another escape", #""\uD800\n""#, .halfPair),
    Fault("two first halves", #""\uD800\uD800""#, .halfPair),
    Fault("the halves in the wrong order", #""\udc00\ud800""#, .halfPair),
    Fault("half a pair in a name", #"{"\ud800":1}"#, .halfPair),
  ]

  /// What a text can have, but not a value.
  static let values = [
    Fault("a member twice", #"{"a":1,"a":2}"#, .memberTwice),
    Fault("a member twice by an escape", #"{"a":1,"\u0061":2}"#, .memberTwice),
    Fault("a member twice inside", #"[{"b":{"a":1,"c":2,"a":1}}]"#, .memberTwice),
    Fault("a number above all Doubles", "1e999", .numberOutOfRange),
    Fault("a number below all Doubles", "[-1e999]", .numberOutOfRange),
    Fault("a whole number above them", String(repeating: "9", count: 400), .numberOutOfRange),
  ]

  @Test(arguments: grammar + halfPairs)
  func `check, reader and search refuse`(fault: Fault) {
    expect(fault.reason) { try JSONText.check(fault.bytes) }
    expect(fault.reason) { try JSONReader.value(fault.bytes) }
    expect(fault.reason) { try JSONText.member("m", in: fault.bytes) }
  }

  @Test(arguments: values)
  func `the reader refuses what the check accepts`(fault: Fault) throws {
    try JSONText.check(fault.bytes)
    expect(fault.reason) { try JSONReader.value(fault.bytes) }
  }

  @Test(arguments: halfPairs)
  func `a check that accepts half a surrogate pair accepts`(fault: Fault) throws {
    try JSONText.check(fault.bytes, acceptsHalfPairs: true)
  }

  @Test func `every cut of a text is refused`() throws {
    let text = Array(#" {"a":"ü\ud83d\ude00","b":[1,-2.5e+3,{"c":null}],"d":true}"#.utf8)
    try JSONText.check(text)
    for count in text.indices {
      #expect(throws: JSONFault.self) { try JSONText.check(Array(text[..<count])) }
      #expect(throws: JSONFault.self) { try JSONReader.value(Array(text[..<count])) }
    }
  }

  @Test func `a fault names its byte, and nothing of the text`() throws {
    let fault = #expect(throws: JSONFault.self) { try JSONText.check(Array(#"["secret" 1]"#.utf8)) }
    #expect(fault?.offset == 10)
    #expect(fault?.description == "has an array without end at byte 11")
    #expect(throws: JSONFault(reason: .notUTF8, offset: 3)) {
      try JSONText.check([0x22, 0x41, 0x42, 0xFF, 0x22])
    }
  }

  @Test(arguments: ["", " ", "1", "[]", #""a""#, "null"])
  func `a text without an object is no object`(text: String) {
    expect(.notAnObject) { try JSONReader.object(Array(text.utf8)) }
  }

  // MARK: - Depth

  private static func nested(_ depth: Int, _ begin: String = "[", _ end: String = "]") -> [UInt8] {
    Array((String(repeating: begin, count: depth) + String(repeating: end, count: depth)).utf8)
  }

  @Test(arguments: [2, 16, 64, 256])
  func `the caller says how many arrays and objects are inside one another`(depth: Int) throws {
    for text in [Self.nested(depth), Self.nested(depth / 2, #"{"a":["#, "]}")] {
      try JSONText.check(text, maximumDepth: depth)
      let value = try JSONReader.value(text, maximumDepth: depth)
      #expect(value.text == String(decoding: text, as: UTF8.self))
      expect(.tooDeep) { try JSONText.check(text, maximumDepth: depth - 1) }
      expect(.tooDeep) { try JSONReader.value(text, maximumDepth: depth - 1) }
    }
  }

  @Test func `64 levels are the default`() throws {
    try JSONText.check(Self.nested(64))
    _ = try JSONReader.value(Self.nested(64))
    #expect(throws: JSONFault(reason: .tooDeep, offset: 64)) {
      try JSONText.check(Self.nested(65))
    }
    expect(.tooDeep) { try JSONReader.value(Self.nested(65)) }
  }

  @Test(arguments: ["[", #"{"a":"#, #"[{"a":"#])
  func `a MiB of beginnings is refused`(begin: String) {
    let text = Array(String(repeating: begin, count: (1 << 20) / begin.utf8.count).utf8)
    expect(.tooDeep) { try JSONText.check(text) }
    expect(.tooDeep) { try JSONReader.value(text) }
    expect(.tooDeep) { try JSONText.member("m", in: text) }
  }

  @Test func `the check uses no stack for a level`() throws {
    let text = Self.nested(1 << 19)
    #expect(try JSONText.check(text, maximumDepth: 1 << 19) == 0..<text.count)
  }
}

/// Expects a fault with a reason, at whatever byte.
private func expect<R>(
  _ reason: JSONFault.Reason, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> R
) {
  let fault = #expect(throws: JSONFault.self, sourceLocation: sourceLocation) { _ = try body() }
  #expect(fault?.reason == reason, sourceLocation: sourceLocation)
}
