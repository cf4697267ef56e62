import Foundation
import TestSupport
import Testing

@Suite struct QueueCommandTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  @Test func `receive returns published lines byte for byte and in order`() throws {
    let home = try TestHome.fresh()
    let input: [UInt8] = Array("a\n\n\u{0}\r\n ".utf8) + [0xFF, 0xC0, 0x0A] + Array("last".utf8)
    try home.queue(["publish", "lines"], input: input).expect(0)
    let outcome = try home.queue("receive", "lines").expect(0)
    #expect(outcome.output == input + [0x0A])
    #expect(try home.queue("receive", "lines").output.isEmpty)
  }

  @Test func `receive returns five thousand published lines unchanged`() throws {
    let input = Array((1...5000).map { "line \($0)\n" }.joined().utf8)
    #expect(try home.queue(["publish", "many"], input: input).status == 0)
    #expect(try home.queue("receive", "many").output == input)
  }

  @Test func `publish without input publishes nothing`() throws {
    let outcome = try home.queue("publish", "c", "--json").expect(0)
    #expect(outcome.output.isEmpty)
  }

  @Test
  func `publish refuses a line over the limit, names its number and keeps the lines before it`()
    throws
  {
    let tooLong = String(repeating: "x", count: 1 << 20 | 1)
    try home.queue("publish", "d", input: "a\nb\n\(tooLong)\nc\n").expect(
      65, says: "line 3 exceeds the limit of 1048576 bytes", "lines 1 to 2 are published",
      "\nhint: ")
    #expect(try home.queue("receive", "d").text == "a\nb\n")
  }

  @Test func `publish accepts a line of exactly the limit`() throws {
    let line = String(repeating: "x", count: 1 << 20)
    #expect(try home.queue("publish", "d", input: line).status == 0)
    #expect(try home.queue("receive", "d").output.count == 1 << 20 | 1)
  }

  @Test func `JSON lines carry any bytes and can be published again`() throws {
    let input = """
      {"payload":"a\\nb \\u0000 \\"é\\" 😀"}

      {"payloadBase64":"/wA=","other":1}
      """
    #expect(try home.queue("publish", "j", "--ndjson", input: input).status == 0)
    let first = try home.queue("receive", "j", "--ndjson")
    #expect(first.text.split(separator: "\n").count == 2)
    #expect(first.text.contains(#""payload":"a\nb \u0000 \"é\" 😀"}"#))
    #expect(first.text.contains(#""payloadBase64":"/wA="}"#))
    try home.queue(["publish", "k", "--ndjson"], input: first.output).expect(0)
    let second = try home.queue("receive", "k", "--ndjson")
    #expect(Self.payloads(second.text) == Self.payloads(first.text))
  }

  @Test(arguments: [
    "{}", "nonsense", #"{"payload":"a","payloadBase64":"YQ=="}"#, #"{"payload":1}"#,
    #"{"payload":"a",}"#, #"{"payload":"a","payload":"b"}"#, "\u{FEFF}{\"payload\":\"a\"}",
    #"{"payload":"a"} {}"#, #"{"payloadBase64":"YR=="}"#, #"{"payload":"\ud800"}"#,
  ])
  func `publish refuses a JSON line without exactly one payload and names its number`(line: String)
    throws
  {
    try home.queue(
      "publish", "j", "--ndjson", input: "{\"payload\":\"good\"}\n\(line)\n"
    ).expect(65, says: "line 2 ")
    #expect(try home.queue("receive", "j").text == "good\n")
  }

  @Test func `receive releases a payload with a newline and suggests --ndjson`() throws {
    let input = #"{"payload":"a"}"# + "\n" + #"{"payload":"b\nc"}"# + "\n" + #"{"payload":"d"}"#
    #expect(try home.queue("publish", "j", "--ndjson", input: input).status == 0)
    let lines = try home.queue("receive", "j").expect(65, says: "hint: give --ndjson")
    #expect(lines.text == "a\n")
    let rest = try home.queue("receive", "j", "--ndjson")
    #expect(Self.payloads(rest.text) == [#"b\nc"#, "d"])
  }

  @Test func `receive prints at most --max messages and keeps the rest`() throws {
    #expect(try home.queue("publish", "m", input: "1\n2\n3\n").status == 0)
    #expect(try home.queue("receive", "m", "--max", "2").text == "1\n2\n")
    #expect(try home.queue("receive", "m", "--max", "2").text == "3\n")
  }

  @Test func `an unacknowledged message is delivered again when its lease ends`() throws {
    let arguments = ["receive", "c", "--no-ack"]
    let leased = try home.queue(arguments + ["--lease", "1h"])
    #expect(leased.text == "first\n")
    #expect(try home.queue("receive", "c").text == "")

    let other = try TestHome.secured()
    let brief = try other.queue(arguments + ["--lease", "1ms", "--ndjson"])
    #expect(brief.text.contains(#""token":"1"#))
    #expect(try other.queue("receive", "c").text == "first\n")
  }

  @Test func `queue stats prints a table, or JSON with --json`() throws {
    func row() throws -> [Substring] {
      let tables = try home.queue("stats").text.split(separator: "\n\n")
      try #require(tables.count == 2)
      let names = tables[1].split(separator: "\n").compactMap { $0.split(separator: " ").first }
      #expect(names == ["database", "limit", "disk"])
      let lines = tables[0].split(separator: "\n")
      try #require(lines.count == 2)
      return lines[1].split(separator: " ")
    }
    #expect(try row().dropLast() == ["c", "1", "-", "1", "0", "0", "0", "0"])
    _ = try home.queue("receive", "c", "--no-ack", "--lease", "1h")
    #expect(try row().dropLast() == ["c", "1", "default", "0", "1", "0", "0", "0"])
    #expect(try row().last?.wholeMatch(of: /[0-9]+s/) != nil)
    try home.queue("stats", "--json").expect(
      0,
      prints: #"{"consumer":"default","deadLetters":0,"delayed":0,"leased":1,"oldestAgeSeconds":"#,
      #""ready":0,"waiting":0}"#, #""oldestTimetoken":"1"#)
  }

  @Test(arguments: [
    ["receive", "c"], ["stats"], ["history", "c"], ["channels"], ["consumers", "c"],
    ["consumers", "add", "c", "n"], ["retention", "c"], ["retention", "set", "c", "--count", "1"],
  ])
  func `a queue command in an empty home ends with 66 and creates nothing`(
    arguments: [String]
  ) throws {
    let home = try TestHome.fresh()
    try home.queue(arguments).expect(66)
    #expect(!FileManager.default.fileExists(atPath: home.path))
  }

  private static func payloads(_ text: String) -> [String] {
    text.split(separator: "\n").map { line in
      line.range(of: #""payload"#).map { String(line[$0.upperBound...].dropFirst(3).dropLast(2)) }
        ?? ""
    }
  }
}
