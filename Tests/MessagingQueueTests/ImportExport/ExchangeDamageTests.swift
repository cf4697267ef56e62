import Foundation
import GRDB
import MessagingQueue
import Testing

@Suite struct ExchangeDamageTests {
  private static func isEmpty(_ engine: PlainEngine) throws -> Bool {
    try engine.number("SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM import)") == 0
  }

  @Test func `an import refuses a file cut at any byte, names the line and changes nothing`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    for count in 0..<whole.count {
      try fixture.write(whole[..<count])
      let error = await fixture.importError()
      #expect(error?.code == .invalidFile, "\(count)")
      #expect(error?.message.contains("line ") == true, "\(count): \(error?.message ?? "")")
    }
    #expect(try Self.isEmpty(fixture.target))
    try fixture.write(whole)
    #expect(try await fixture.targetEngine.importMessages(from: fixture.path).messageCount == 3)
  }

  @Test func `an import refuses a file with any changed byte and changes nothing`() async throws {
    let (fixture, whole) = try await ExchangeFixture.small()
    for index in whole.indices {
      var bytes = whole
      bytes[index] ^= 1 << UInt8(index % 8)
      try fixture.write(bytes)
      #expect(await fixture.importCode() == .invalidFile, "byte \(index), bit \(index % 8)")
    }
    #expect(try Self.isEmpty(fixture.target))
  }

  @Test func `a changed file without its digest is refused or gives a consistent database`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    let text = String(decoding: whole, as: UTF8.self)
    let digest = try #require(
      text.range(of: #","sha256":"[0-9a-f]{64}""#, options: .regularExpression))
    let bare = Array(text.replacingCharacters(in: digest, with: "").utf8)
    var taken = 0
    for index in stride(from: 0, to: bare.count, by: 19) {
      var bytes = bare
      bytes[index] ^= 1
      let target = try PlainEngine()
      let engine = try target.engine(isSecured: false)
      try fixture.write(bytes)
      do throws(EngineError) {
        _ = try await engine.importMessages(from: fixture.path)
        taken += 1
      } catch {
        #expect(error.code == .invalidFile)
        #expect(try Self.isEmpty(target))
      }
      #expect(try ExchangeFixture.faults(target) == [], "byte \(index)")
    }
    #expect(taken > 0)
  }

  /// The line of a message with more members.
  private static func message(_ members: String) -> String {
    #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","#
      + members + "}"
  }

  private static func deadLetter(attempts: Int = 1, reason: String) -> String {
    message(
      #""deadLetters":[{"consumer":"a","attempts":\#(attempts),"reason":"\#(reason)","died":"1"}]"#)
  }

  private static func failure(attempt: Int = 1, reason: String) -> String {
    message(
      #""deliveries":[{"consumer":"a","attempts":1,"failures":["#
        + #"{"attempt":\#(attempt),"time":"1","reason":"\#(reason)"}]}]"#)
  }

  private static let longReason = String(repeating: "x", count: 1025)

  private static let resumption = #"{"record":"resumed","commitNumber":0,"highWater":"0"}"#
  private static let channelLine = #"{"record":"channel","channel":"c"}"#

  static let refusals: [(line: String, reason: String)] = [
    (deadLetter(reason: longReason), "has a reason of 1025 bytes"),
    (deadLetter(reason: ""), "has a reason of 0 bytes"),
    (failure(reason: longReason), "has a reason of 1025 bytes"),
    (#"{"record":"message","timetoken":"17000000000000000","channel":"c"}"#, "needs exactly one"),
    (#"{"record":"message","timetoken":"1700","channel":"c","payload":""}"#, "17 digits"),
    (
      #"{"record":"message","timetoken":17000000000000000,"channel":"c","payload":""}"#,
      "not a string"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"","payload":""}"#, "is empty"
    ),
    (message(#""more":1"#), "unknown member"),
    (#"{"record":"resumed","commitNumber":0,"highWater":"99999999999999999"}"#, "366 days"),
    (message(#""priority":10"#), "priority"),
    (message(#""settledBy":["a","a"]"#), "two states"),
    (message(#""deliveries":[{"consumer":"a","attempts":9223372036854775807}]"#), "9 digits"),
    (deadLetter(attempts: 1_000_000_000, reason: ""), "9 digits"),
    (failure(attempt: .max, reason: ""), "9 digits"),
    (
      #"{"record":"message","timetoken":"17000000000000001","channel":"c","payload":""}"#,
      "greater than highWater"
    ),
    (
      #"{"record":"channel","channel":"c","removedThrough":"17000000000000001"}"#,
      "greater than highWater"
    ),
    (
      #"{"record":"deduplication","channel":"c","id":"a","timetoken":"17000000000000001","until":"1"}"#,
      "greater than highWater"
    ),
    (#"{"record":"letter"}"#, "unknown kind"), (#"{"payload":"a"}"#, "not an export"),
    ("", "not a JSON object"), (#"{"record":"channel","channel":"c",}"#, "lacks the name"),
    (#"{"record":"export","version":1}"#, "id"),
  ]

  @Test(arguments: refusals.indices)
  func `an import refuses an invalid line with its number`(index: Int) async throws {
    let (line, reason) = Self.refusals[index]
    let fixture = try await ExchangeFixture()
    let id = String(repeating: "0f", count: 16)
    let text = """
      {"record":"export","version":1,"id":"\(id)","source":"\(id)","commitNumber":0,"highWater":"17000000000000000"}
      \(line)
      {"record":"end","messages":1,"lines":2}

      """
    try fixture.write(text.utf8)
    let error = await fixture.importError()
    #expect(error?.code == .invalidFile)
    #expect(error?.message.contains("line 2 ") == true, "\(error?.message ?? "")")
    #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    #expect(try Self.isEmpty(fixture.target))
  }

  @Test(
    arguments: [
      (#","after":"16999999999999999""#, "", nil),
      (#","after":"17000000000000000""#, "", "line 2 has a message outside the selection"),
      (#","channels":["c"]"#, "", nil),
      (#","channels":["d"]"#, "", "line 2 has a message outside the selection"),
      ("", channelLine, "line 3 comes after its messages"),
      ("", #"{"record":"consumer","channel":"c","consumer":"a"}"#, "line 3 comes after"),
      ("", resumption, nil), ("", resumption + "\n" + channelLine, nil),
      (
        "",
        resumption + "\n"
          + #"{"record":"deduplication","channel":"c","id":"a","timetoken":"17000000000000000","until":"1"}"#
          + "\n" + channelLine, "line 5 comes after its messages"
      ),
    ] as [(String, String, String?)])
  func `an import checks the rules that span several lines`(
    choice: String, line: String, reason: String?
  ) async throws {
    let fixture = try await ExchangeFixture()
    let id = String(repeating: "0f", count: 16)
    let lines =
      [
        #"{"record":"export","version":1,"id":"\#(id)","source":"\#(id)""# + choice
          + #","commitNumber":0,"highWater":"17000000000000000"}"#,
        #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":""}"#,
      ] + line.split(separator: "\n").map(String.init)
    let end = #"{"record":"end","messages":1,"lines":\#(lines.count)}"#
    try fixture.write((lines + [end]).map { $0 + "\n" }.joined().utf8)
    let error = await fixture.importError()
    #expect((error == nil) == (reason == nil), "\(error?.message ?? "")")
    guard let error else { return }
    #expect(error.code == .invalidFile)
    #expect(reason.map(error.message.contains) == true, "\(error.message)")
    #expect(try Self.isEmpty(fixture.target))
  }

  @Test func `an import refuses a payload over the limit with its line and changes nothing`()
    async throws
  {
    let (fixture, _) = try await ExchangeFixture.small()
    let engine = try fixture.target.engine(isSecured: false) { $0.maximumPayloadByteCount = 8 }
    let error = await #expect(throws: EngineError.self) {
      _ = try await engine.importMessages(from: fixture.path)
    }
    #expect(error?.message.contains("has a payload of 9 bytes, the limit is 8") == true)
    #expect(try Self.isEmpty(fixture.target))
  }
}
