import Foundation
import MessagingQueue
import StrictJSON
import Testing

@Suite struct JSONLineTests {
  static let refusedTexts: [(line: String, reason: String)] = [
    ("", "is not a JSON object"), ("[]", "is not a JSON object"), ("7", "is not a JSON object"),
    ("\u{FEFF}{}", "byte order mark"), ("{} {}", "goes on"), ("{}x", "goes on"),
    (#"{"a":1,}"#, "lacks the name"), (#"{"a":[1,]}"#, "lacks a value"), ("{,}", "lacks the name"),
    (#"{"a":1,"a":2}"#, "twice"), (#"{"a":1,"\u0061":2}"#, "twice"),
    (#"{"a":{"b":1,"b":1}}"#, "twice"), (#"{"a"}"#, "colon"), (#"{"a":}"#, "lacks a value"),
    (#"{"a":1"#, "without end"), (#"{"a":"b}"#, "without end"), (#"{"a":[1}"#, "without end"),
    (#"{"a":01}"#, "leading zero"), (#"{"a":+1}"#, "lacks a value"), (#"{"a":1.}"#, "digits"),
    (#"{"a":.5}"#, "lacks a value"), (#"{"a":1e}"#, "digits"), (#"{"a":-}"#, "digits"),
    (#"{"a":NaN}"#, "lacks a value"), (#"{"a":nul}"#, "lacks a value"),
    (#"{"a":"\x"}"#, "escape"), (#"{"a":"\u12"}"#, "escape"), (#"{"a":"\u12G4"}"#, "escape"),
    (#"{"a":"\ud800"}"#, "surrogate"), (#"{"a":"\ud800\u0041"}"#, "surrogate"),
    (#"{"a":"\udc00"}"#, "surrogate"), ("{\"a\":\"\t\"}", "control character"),
    ("{'a':1}", "lacks the name"), ("{\"a\":1//x\n}", "without end"),
    (String(repeating: #"{"a":"#, count: 40) + "1" + String(repeating: "}", count: 40), "deep"),
  ]

  @Test(arguments: refusedTexts.indices)
  func `the parser refuses a line that readers of JSON interpret differently`(index: Int) throws {
    let (line, reason) = Self.refusedTexts[index]
    let fault = #expect(throws: JSONFault.self) { try JSONLine(Array(line.utf8)) }
    #expect(fault?.description.contains(reason) == true, "\(fault?.description ?? "accepted")")
  }

  @Test(arguments: [[0xFF], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xC3]] as [[UInt8]])
  func `bytes that are not UTF-8 are refused`(bytes: [UInt8]) {
    let line: [UInt8] = Array(#"{"a":""#.utf8) + bytes + Array(#""}"#.utf8)
    #expect(throws: JSONFault.self) { try JSONLine(line) }
  }

  @Test func `the parser refuses every cut of a line`() throws {
    let line = Array(#" {"a":"ü\ud83d\ude00","b":[1,-2.5e+3,{"c":null}],"d":true}"#.utf8)
    _ = try JSONLine(line)
    for count in 0..<line.count {
      #expect(throws: JSONFault.self) { try JSONLine(Array(line[..<count])) }
    }
  }

  @Test func `the parser reads values as Foundation does`() throws {
    let text =
      #" { "t" : "a\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00€\u0000" , "n":-0.5E-2,"l":[],"o":{ } } "#
    let line = try JSONLine(Array(text.utf8))
    let expected = try #require(
      JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(line["t"]?.string == expected["t"] as? String)
    if case .number(let number)? = line["n"] { #expect(number.double == -0.005) }
    #expect(line["l"]?.elements?.isEmpty == true)
    #expect(line["o"]?.members?.isEmpty == true)
    #expect(line["absent"] == nil)
  }

  @Test func `names that only look alike are different names`() throws {
    let line = try JSONLine(Array("{\"\u{E9}\":\"one\",\"e\u{301}\":\"two\"}".utf8))
    #expect(line["\u{E9}"]?.string == "one")
    #expect(line["e\u{301}"]?.string == "two")
  }

  @Test(arguments: ["QQ", "QR==", "Q Q==", "QQ==\n", "_-==", "QQ=", "QQ===", "="])
  func `base64 is accepted only in its canonical form`(text: String) {
    #expect(Base64Text.decode(text) == nil)
  }

  @Test func `base64 decodes to the encoded bytes`() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
      #expect(Base64Text.decode(Base64Text.encode(bytes)) == bytes)
    }
  }
}
