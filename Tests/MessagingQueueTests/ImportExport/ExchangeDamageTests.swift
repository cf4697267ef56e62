import Foundation
import GRDB
import Glibc
import MessagingQueue
import SystemPackage
import Testing

@Suite struct ExchangeDamageTests {
  /// A file of a few messages with all kinds of records.
  private static func small() async throws -> (ExchangeFixture, [UInt8]) {
    let fixture = try await ExchangeFixture()
    let channel = try Channel("c")
    try await fixture.sourceEngine.addConsumer(.default, of: channel, maximumAttempts: 2)
    for index in 0..<3 {
      var message = Message(channel: channel, payload: Array("payload \(index)".utf8))
      message.headers = ["n": "\(index)"]
      message.deduplicationID = "id \(index)"
      try await fixture.sourceEngine.publish(message)
    }
    let taken = try await fixture.sourceEngine.receive(
      from: channel, maximumCount: 2, lease: .seconds(30))
    try await fixture.sourceEngine.reject([taken[0].token], reason: "no")
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    return (fixture, try fixture.bytes())
  }

  private static func isEmpty(_ engine: PlainEngine) throws -> Bool {
    try engine.number("SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM import)") == 0
  }

  @Test func `an import refuses a file cut at any byte, names the line and changes nothing`()
    async throws
  {
    let (fixture, whole) = try await Self.small()
    for count in 0..<whole.count {
      try fixture.write(whole[..<count])
      let error = await #expect(throws: EngineError.self) {
        _ = try await fixture.targetEngine.importMessages(from: fixture.path)
      }
      #expect(error?.code == .invalidFile, "\(count)")
      #expect(error?.message.contains("line ") == true, "\(count): \(error?.message ?? "")")
    }
    #expect(try Self.isEmpty(fixture.target))
    try fixture.write(whole)
    #expect(try await fixture.targetEngine.importMessages(from: fixture.path).messageCount == 3)
  }

  @Test func `an import refuses a file with any changed byte and changes nothing`() async throws {
    let (fixture, whole) = try await Self.small()
    for (index, bit) in zip(whole.indices, (0..<8).cycled(whole.count)) {
      var bytes = whole
      bytes[index] ^= 1 << UInt8(bit)
      try fixture.write(bytes)
      #expect(await fixture.importCode() == .invalidFile, "byte \(index), bit \(bit)")
    }
    #expect(try Self.isEmpty(fixture.target))
  }

  @Test func `a changed file without its digest is refused or gives a consistent database`()
    async throws
  {
    let (fixture, whole) = try await Self.small()
    let text = String(decoding: whole, as: UTF8.self)
    let digest = try #require(
      text.range(of: #","sha256":"[0-9a-f]{64}""#, options: .regularExpression))
    let bare = Array(text.replacingCharacters(in: digest, with: "").utf8)
    var taken = 0
    for index in stride(from: 0, to: bare.count, by: 19) {
      var bytes = bare
      bytes[index] ^= 1
      let target = try PlainEngine()
      let engine = try MessagingEngine(pool: target.pool, time: target.time, isSecured: false)
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

  static let refusals: [(line: String, reason: String)] = [
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","deadLetters":[{"consumer":"a","attempts":1,"reason":"@","died":"1"}]}"#
        .replacing("@", with: String(repeating: "x", count: 1025)), "has a reason of 1025 bytes"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","deadLetters":[{"consumer":"a","attempts":1,"reason":"@","died":"1"}]}"#
        .replacing("@", with: String(repeating: "x", count: 0)), "has a reason of 0 bytes"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","deliveries":[{"consumer":"a","attempts":1,"failures":[{"attempt":1,"time":"1","reason":"@"}]}]}"#
        .replacing("@", with: String(repeating: "x", count: 1025)), "has a reason of 1025 bytes"
    ),
    (#"{"record":"message","timetoken":"17000000000000000","channel":"c"}"#, "needs exactly one"),
    (#"{"record":"message","timetoken":"1700","channel":"c","payload":""}"#, "17 digits"),
    (
      #"{"record":"message","timetoken":17000000000000000,"channel":"c","payload":""}"#,
      "not a string"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"","payload":""}"#, "is empty"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","more":1}"#,
      "unknown member"
    ),
    (
      #"{"record":"resumed","commitNumber":0,"highWater":"99999999999999999"}"#,
      "366 days"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","priority":10}"#,
      "priority"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","settledBy":["a","a"]}"#,
      "two states"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","deliveries":[{"consumer":"a","attempts":9223372036854775807}]}"#,
      "9 digits"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","deadLetters":[{"consumer":"a","attempts":1000000000,"reason":"","died":"1"}]}"#,
      "9 digits"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","deliveries":[{"consumer":"a","attempts":1,"failures":[{"attempt":9223372036854775807,"time":"1","reason":""}]}]}"#,
      "9 digits"
    ),
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
    let error = await #expect(throws: EngineError.self) {
      _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    }
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
      ("", #"{"record":"channel","channel":"c"}"#, "line 3 comes after its messages"),
      ("", #"{"record":"consumer","channel":"c","consumer":"a"}"#, "line 3 comes after"),
      ("", #"{"record":"resumed","commitNumber":0,"highWater":"0"}"#, nil),
      (
        "",
        #"{"record":"resumed","commitNumber":0,"highWater":"0"}"# + "\n"
          + #"{"record":"channel","channel":"c"}"#, nil
      ),
      (
        "",
        #"{"record":"resumed","commitNumber":0,"highWater":"0"}"# + "\n"
          + #"{"record":"deduplication","channel":"c","id":"a","timetoken":"17000000000000000","until":"1"}"#
          + "\n"
          + #"{"record":"channel","channel":"c"}"#, "line 5 comes after its messages"
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
    do throws(EngineError) {
      _ = try await fixture.targetEngine.importMessages(from: fixture.path)
      #expect(reason == nil)
    } catch {
      #expect(error.code == .invalidFile)
      #expect(reason.map(error.message.contains) == true, "\(error.message)")
      #expect(try Self.isEmpty(fixture.target))
    }
  }

  @Test func `an import refuses a payload over the limit with its line and changes nothing`()
    async throws
  {
    let (fixture, _) = try await Self.small()
    var configuration = EngineConfiguration()
    configuration.maximumPayloadByteCount = 8
    let engine = try MessagingEngine(
      pool: fixture.target.pool, time: fixture.target.time, configuration: configuration,
      isSecured: false)
    let error = await #expect(throws: EngineError.self) {
      _ = try await engine.importMessages(from: fixture.path)
    }
    #expect(error?.message.contains("has a payload of 9 bytes, the limit is 8") == true)
    #expect(try Self.isEmpty(fixture.target))
  }

  @Test func `an export cut at any byte continues without a gap or a duplicate`() async throws {
    let (fixture, whole) = try await Self.small()
    let partial = FilePath(fixture.path.string + ".partial")
    let expected = try ExchangeFixture.dump(fixture.source)
    for count in stride(from: 0, through: whole.count, by: 23) {
      try FileManager.default.removeItem(atPath: fixture.path.string)
      try fixture.write(whole[..<count], to: partial)
      let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
      #expect(report.messageCount == 3)
      #expect(!report.databaseChanged)
      let target = try PlainEngine()
      let engine = try MessagingEngine(pool: target.pool, time: target.time, isSecured: false)
      _ = try await engine.importMessages(from: fixture.path)
      let found = try ExchangeFixture.dump(target)
      try #require(found == expected, "\(count): \(found.difference(from: expected))")
    }
  }

  @Test func `an unfinished export continues before a line that an import would refuse`()
    async throws
  {
    let (fixture, whole) = try await Self.small()
    let partial = FilePath(fixture.path.string + ".partial")
    let expected = try ExchangeFixture.dump(fixture.source)
    try FileManager.default.removeItem(atPath: fixture.path.string)
    // The second message's timetoken is too great: the first message stays, the second and third
    // are written again.
    let place = whole.indices.filter { whole[$0...].starts(with: #"{"record":"message""#.utf8) }[1]
    let digit = place + Array(#"{"record":"message","timetoken":""#.utf8).count
    var changed = whole
    changed[digit] = UInt8(ascii: "9")
    try fixture.write(changed, to: partial)
    let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(report.messageCount == 3)
    #expect(report.resumedAfter == 1)
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(try ExchangeFixture.dump(fixture.target) == expected)
  }

  @Test func `an export refuses and keeps an unfinished file of a later state of the database`()
    async throws
  {
    let (fixture, whole) = try await Self.small()
    let partial = FilePath(fixture.path.string + ".partial")
    try FileManager.default.removeItem(atPath: fixture.path.string)
    let digit = try #require(whole.firstRange(of: Array(#""highWater":""#.utf8))).upperBound
    var later = whole
    later[digit] = UInt8(ascii: "9")
    try fixture.write(later, to: partial)
    let error = await #expect(throws: EngineError.self) {
      _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    }
    #expect(error?.message.contains("of a later state of this database") == true)
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial.string))) == later)
  }

  @Test func `an export refuses and keeps another file named like an unfinished export`()
    async throws
  {
    let fixture = try await ExchangeFixture()
    let partial = FilePath(fixture.path.string + ".partial")
    let other = Array("{\"record\":\"other\"}\nsomebody else's\n".utf8)
    try fixture.write(other, to: partial)
    await #expect {
      _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial.string))) == other)
  }

  @Test func `an export refuses and keeps an unfinished export of other messages`() async throws {
    let (fixture, whole) = try await Self.small()
    let partial = FilePath(fixture.path.string + ".partial")
    try FileManager.default.removeItem(atPath: fixture.path.string)
    try fixture.write(whole[..<(whole.count / 2)], to: partial)
    let channel = try Channel("c")
    await #expect {
      _ = try await fixture.sourceEngine.exportMessages(
        MessageSelection(channels: [channel]), to: fixture.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    await #expect {
      _ = try await fixture.targetEngine.exportMessages(to: fixture.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(FileManager.default.fileExists(atPath: partial.string))
  }

  @Test func `an export refuses and keeps a complete, unnamed export of other messages`()
    async throws
  {
    let (fixture, whole) = try await Self.small()
    let partial = FilePath(fixture.path.string + ".partial")
    try FileManager.default.moveItem(atPath: fixture.path.string, toPath: partial.string)
    await #expect {
      _ = try await fixture.targetEngine.exportMessages(to: fixture.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial.string))) == whole)
  }

  @Test func `a complete, unnamed export takes the messages since then and reports it`()
    async throws
  {
    let (fixture, _) = try await Self.small()
    let partial = FilePath(fixture.path.string + ".partial")
    try FileManager.default.moveItem(atPath: fixture.path.string, toPath: partial.string)
    let unchanged = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(unchanged.messageCount == 3)
    #expect(!unchanged.databaseChanged)
    try FileManager.default.moveItem(atPath: fixture.path.string, toPath: partial.string)
    try await fixture.sourceEngine.publish(Message(channel: try Channel("c"), payload: [1]))
    let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(report.messageCount == 4)
    #expect(report.databaseChanged)
    #expect(try await fixture.targetEngine.importMessages(from: fixture.path).messageCount == 4)
    #expect(try ExchangeFixture.faults(fixture.target) == [])
  }

  @Test func `an export refuses a pipe named like an unfinished export`() async throws {
    let (fixture, _) = try await Self.small()
    try FileManager.default.removeItem(atPath: fixture.path.string)
    let pipe = fixture.path.string + ".partial"
    #expect(mkfifo(pipe, 0o600) == 0)
    // A writer gives the reader of the pipe some bytes, so that it does not block.
    let writing = open(pipe, O_RDWR)
    defer { close(writing) }
    #expect(write(writing, "x\n", 2) == 2)
    await #expect {
      _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    } throws: { ($0 as? EngineError)?.code == .foreignFile }
  }

  @Test(arguments: ["mode", "owner", "hard link", "symbolic link"])
  func `an export refuses and keeps an unfinished file that another user could have made`(
    _ planted: String
  ) async throws {
    let (fixture, whole) = try await Self.small()
    let partial = fixture.path.string + ".partial"
    let victim = fixture.path.string + ".victim"
    try FileManager.default.removeItem(atPath: fixture.path.string)
    // The beginning of an export of the same messages: only its owner or its mode is wrong.
    let beginning = whole[..<(whole.count / 2)]
    try fixture.write(beginning, to: FilePath(victim))
    switch planted {
    case "hard link": #expect(link(victim, partial) == 0)
    case "symbolic link": #expect(symlink(victim, partial) == 0)
    case "mode":
      try FileManager.default.moveItem(atPath: victim, toPath: partial)
      #expect(chmod(partial, 0o644) == 0)
    default:
      guard geteuid() == 0 else { return }
      try FileManager.default.moveItem(atPath: victim, toPath: partial)
      #expect(chown(partial, 65534, 65534) == 0)
    }
    let error = await #expect(throws: EngineError.self) {
      _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    }
    #expect(error?.code == .foreignFile)
    #expect(error?.hint?.contains("remove it") == true)
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial))) == Array(beginning))
    #expect(!FileManager.default.fileExists(atPath: fixture.path.string))
  }
}

extension Range<Int> {
  /// The numbers of the range, repeated `count` times.
  fileprivate func cycled(_ count: Int) -> [Int] {
    (0..<count).map { lowerBound + $0 % self.count }
  }
}
