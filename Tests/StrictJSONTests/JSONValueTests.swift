import Foundation
import StrictJSON
import TestSupport
import Testing

/// Values as they are read and written.
@Suite struct JSONValueTests {
  private func value(_ text: String) throws -> JSONValue { try JSONReader.value(Array(text.utf8)) }

  @Test(arguments: [
    "null", "true", "false", "0", "-1", "[]", "{}", #""""#, #"["a",["b"],{"c":[{}]}]"#,
    #"{"a":[1,-2,1.5,true,null,"é\u0001\"\\"],"b":{}}"#, #""\n\r\t\u0000\u001f/😀""#,
    #"{"z":1,"a":{"é":2},"é":3}"#, #"{"":{"":0}}"#,
  ])
  func `a text without white space comes back byte for byte`(text: String) throws {
    #expect(try value(text).text == text)
    let object = #"{"m":\#(text)}"#
    #expect(try JSONValue.object(JSONReader.object(Array(object.utf8))).text == object)
  }

  @Test(arguments: [
    "0", "-0", "1.10", "12345678901234567890", "-9223372036854775808", "9223372036854775807",
    "9223372036854775808", "0.1000000000000000055511151231257827", "1E3", "1e+3", "1e-400", "-0.0",
    "123456789012345678901234567890.5e-10",
  ])
  func `a number comes back as it was written`(text: String) throws {
    let value = try value(text)
    #expect(value.text == text)
    if case .number(let number) = value {
      #expect(number.double == Double(text))
      #expect(number.text == text)
    } else {
      #expect(value == .integer(try #require(Int64(text))))
    }
  }

  @Test func `a number from a Double has the shortest text`() {
    #expect(JSONNumber(0.1).text == "0.1")
    #expect(JSONNumber(-1e300).text == "-1e+300")
    #expect(JSONNumber(.infinity) == nil)
    #expect(JSONNumber(-.infinity) == nil)
    #expect(JSONNumber(.nan) == nil)
    for number in [Double.leastNonzeroMagnitude, .greatestFiniteMagnitude, -0.0, 1.0 / 3, 1e22] {
      #expect(JSONNumber(number)?.double.bitPattern == number.bitPattern)
    }
  }

  @Test func `white space around tokens does not matter`() throws {
    #expect(try value(" \t\r\n[ 1 , { \"a\" : [ ] } ] ") == [1, ["a": []]])
  }

  @Test func `escapes stand for characters`() throws {
    #expect(try value(#""\"\\\/\b\f\n\r\t""#) == .string("\"\\/\u{8}\u{C}\n\r\t"))
    #expect(try value(#""\u00e9\u00E9\ud83d\uDE00\u0000\uffff""#) == .string("éé😀\0\u{FFFF}"))
    #expect(try value(#""\ud800\udc00\udbff\udfff""#) == .string("\u{10000}\u{10FFFF}"))
    #expect(try value(#""a\u0062c\\u0041""#) == .string(#"abc\u0041"#))
  }

  @Test func `each character comes back, escaped or not`() throws {
    for scalar in (0...0x2FF).compactMap({ Unicode.Scalar($0 as UInt32) }) {
      let value = JSONValue.string("a\(scalar)b")
      #expect(try self.value(value.text) == value)
      let escaped = "\"a\\u\(String(format: "%04x", scalar.value))b\""
      #expect(try self.value(escaped) == value)
    }
  }

  @Test func `names that only look alike are different names`() throws {
    let value = try value("{\"\u{E9}\":1,\"e\u{301}\":2}")
    #expect(value.member("\u{E9}") == 1)
    #expect(value.member("e\u{301}") == 2)
  }

  @Test func `a value gives what it is, and nothing else`() throws {
    let value = try value(#"{"s":"x","i":7,"n":1.5,"b":false,"a":[1],"o":{"m":null}}"#)
    #expect(value.member("s")?.string == "x")
    #expect(value.member("i")?.integer == 7)
    #expect(value.member("n") == .number(1.5))
    #expect(value.member("b")?.boolean == false)
    #expect(value.member("a")?.elements == [1])
    #expect(value.member("o")?.members == [JSONMember("m", .null)])
    #expect(value.member("x") == nil)
    #expect(JSONValue.array([]).member("a") == nil)
    for value in value.members?.map(\.value) ?? [] {
      let kinds = [
        value.string != nil, value.integer != nil, value.boolean != nil, value.elements != nil,
        value.members != nil,
      ]
      #expect(kinds.count(where: \.self) == (value == .number(1.5) ? 0 : 1))
    }
  }

  @Test(arguments: [
    "", "abc", "\"", "\\", "a\"b\\c", "\u{0}\u{1F}\u{20}\u{7F}", "\n\r\t\u{8}\u{C}", "é😀\u{2028}",
    "\"\"\"\\\\", "a\n",
  ])
  func `a quoted string is appended to what is there`(text: String) throws {
    var fromString = Array("x".utf8)
    JSONText.append(quoting: text, to: &fromString)
    var fromBytes = Array("x".utf8)
    JSONText.append(quoting: Array(text.utf8), to: &fromBytes)
    #expect(fromString == fromBytes)
    #expect(fromString.first == UInt8(ascii: "x"))
    #expect(try JSONReader.value(Array(fromString.dropFirst())) == .string(text))
    let object = try JSONSerialization.jsonObject(
      with: Data(fromString.dropFirst()), options: .fragmentsAllowed)
    #expect(object as? String == text)
  }

  // MARK: - Places in texts

  @Test(arguments: ["1", " {\"a\":[1, 2]}\n", "\t\"x\" ", "[ ]"])
  func `a check returns the place of the value`(text: String) throws {
    let bytes = Array(text.utf8)
    let place = try JSONText.check(bytes)
    #expect(
      String(decoding: bytes[place], as: UTF8.self)
        == text.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  @Test(arguments: [
    (#"{"m":1}"#, "1"), (#"{"a":{"m":0},"m" : [ true ] ,"z":[{"m":1}]}"#, "[ true ]"),
    (#"{"\u006d":"\n"}"#, #""\n""#), (#"{"a":1,"a":2,"m":{"m":{}}} "#, #"{"m":{}}"#),
    (#"{"a":{"m":0}}"#, nil), ("{}", nil), (#"["m"]"#, nil), (#""m""#, nil), ("7", nil),
  ])
  func `a member of the outermost object is found in its place`(
    text: String, found: String?
  ) throws {
    let bytes = Array(text.utf8)
    let place = try JSONText.member("m", in: bytes)
    #expect(place.map { String(decoding: bytes[$0], as: UTF8.self) } == found)
  }

  @Test func `a member that is sought and there twice is a fault`() {
    #expect(throws: JSONFault(reason: .memberTwice, offset: 7)) {
      try JSONText.member("m", in: Array(#"{"m":1,"\u006d":2}"#.utf8))
    }
  }

  @Test(arguments: [#"{"\ud83d\u0041":1}"#, #"{"\udc3d\udc41":1}"#, #"{"\ud83d":1}"#])
  func `half a surrogate pair is no character of a name`(text: String) throws {
    for name in ["\u{1F441}", "\u{FFFD}", ""] {
      #expect(try JSONText.member(name, in: Array(text.utf8), acceptsHalfPairs: true) == nil)
    }
  }
}
