import Foundation
import MessageCipher
import TestSupport
import Testing

/// The texts that are JSON, and the places of members in them.
@Suite struct JSONTests {
  private static let valid = [
    "{}", "[]", "null", "true", "false", "0", "-0", "1.5", "1E3", "-1.5e-3", "1e+10", #""""#,
    " \t\r\n1 \n", #"[1 , [ ] , { } ]"#, #"{"a":{"a":[null]},"b":""}"#, #""\"\\\/\b\f\n\r\t""#,
    #""\u00e9\uD83D\uDCDA\ud800""#, "\"\u{7F}é📚\"", #"{"a":1,"a":2}"#,
    String(repeating: "[", count: 512) + String(repeating: "]", count: 512),
  ]

  private static let invalid = [
    "", " ", "nul", "nulll", "True", "NaN", "Infinity", "01", "-", "+1", "1.", ".5", "1e", "1e+",
    "0x1", "'a'", "\"", "\"a", #""\"#, #""\x""#, #""\u12g4""#, #""\u12"#, "\"\t\"", "\"\0\"",
    "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "]", "{", "{\"a\"", "{\"a\":", "{\"a\":1",
    "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "1 2", "1,", "{}{}",
    "\u{FEFF}1", "/**/1", "1//", "\u{A0}1",
    String(repeating: "[", count: 513) + String(repeating: "]", count: 513),
  ]

  @Test(arguments: valid)
  func `a JSON text is encrypted`(text: String) throws {
    let cipher = try Samples.cipher()
    let message = try cipher.encrypt(text.utf8, channel: "c")
    #expect(try cipher.decrypt(message, channel: "c").text == text)
  }

  @Test(arguments: invalid)
  func `a text that is not JSON is refused`(text: String) throws {
    let cipher = try Samples.cipher()
    #expect(code { _ = try cipher.encrypt(text.utf8, channel: "c") } == .notJSON)
    #expect(code { _ = try cipher.encrypt(member: "a", of: text.utf8, channel: "c") } == .notJSON)
    #expect(code { _ = try cipher.decrypt(text.utf8, channel: "c") } == .notJSON)
  }

  @Test func `a text that is not UTF-8 is refused`() throws {
    let cipher = try Samples.cipher()
    for bytes: [UInt8] in [
      [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
    ] {
      #expect(code { _ = try cipher.encrypt(bytes, channel: "c") } == .notJSON)
    }
  }

  /// Python's parser is the judge of both tables; it takes three names that JSON lacks.
  @Test func `Python's parser agrees about every text`() throws {
    let script = """
      import json, sys
      def refuse(name): raise ValueError(name)
      for text in json.load(sys.stdin):
          try: json.loads(text.encode(), parse_constant=refuse); print(1)
          except (ValueError, UnicodeDecodeError): print(0)
      """
    // Python has no limit of depth, and takes a byte order mark.
    let texts = (Self.valid + Self.invalid).filter {
      $0.utf8.count < 1000 && $0.first != "\u{FEFF}"
    }
    let input = try JSONSerialization.data(withJSONObject: texts)
    let program = try Program.run("/usr/bin/python3", ["-c", script], input: [UInt8](input))
    let answers = program.text.split(separator: "\n").map { $0 == "1" }
    try #require(answers.count == texts.count)
    for (text, answer) in zip(texts, answers) {
      #expect(Self.valid.contains(text) == answer, "\(text)")
    }
  }

  @Test(arguments: [
    (#"{"m":V}"#, "m"), (#" { "a" : {"m":0} , "m" : V , "z":[{"m":1}] } "#, "m"),
    (#"{"\u006d":V}"#, "m"), (#"{"m\/\"":V,"m":2}"#, #"m/""#), (#"{"Bücher":V}"#, "Bücher"),
    (#"{"B\u00FCcher 📚":V}"#, "Bücher \u{1F4DA}"), (#"{"\ud83d\udcda":V}"#, "📚"),
    (#"{"\ud800":1,"x":V}"#, "x"),
  ])
  func `only the member's value changes, and comes back`(template: String, member: String) throws {
    let cipher = try Samples.cipher()
    for value in ["1", #"{"m": [ true ]}"#, #""\u006d""#] {
      let object = template.replacing("V", with: value)
      let sealed = try cipher.encrypt(member: member, of: object.utf8, channel: "c")
      let text = String(decoding: sealed, as: UTF8.self)
      let around = template.split(separator: "V")
      #expect(text.hasPrefix(around[0] + "\"UE5FRAFEVlgxI"))
      #expect(text.hasSuffix("\"" + around[1]))
      let opened = try cipher.decrypt(member: member, of: sealed, channel: "c")
      #expect(opened.text == object)
    }
  }

  @Test(arguments: [#"{"\ud83d\u0041":1}"#, #"{"\udc3d\udc41":1}"#, #"{"\ud83d":1}"#])
  func `half a surrogate pair is no character of a name`(object: String) throws {
    let cipher = try Samples.cipher()
    // What the first two would be if every second escape completed a pair.
    for member in ["\u{1F441}", "\u{FFFD}", ""] {
      #expect(
        code { _ = try cipher.encrypt(member: member, of: object.utf8, channel: "c") }
          == .memberMissing)
    }
  }

  @Test func `a member that is missing, nested or twice there is refused`() throws {
    let cipher = try Samples.cipher()
    func outcome(_ object: String) -> MessageCipherError.Code? {
      code { _ = try cipher.encrypt(member: "m", of: object.utf8, channel: "c") }
    }
    #expect(outcome(#"{"a":{"m":1}}"#) == .memberMissing)
    #expect(outcome(#"["m"]"#) == .memberMissing)
    #expect(outcome(#""m""#) == .memberMissing)
    #expect(outcome(#"{"m":1,"\u006d":2}"#) == .notJSON)
    #expect(outcome(#"{"a":1,"a":2,"m":3}"#) == nil)
  }
}
