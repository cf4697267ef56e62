import Foundation
import GRDB
import Glibc
import MessagingQueue
import SystemPackage
import Testing

@Suite struct ExchangeDamageTests {
  /// A file of a few messages with all kinds of records.
  private static func small() async throws -> (ExchangeFixture, [UInt8]) {
    let bench = try await ExchangeFixture()
    let channel = try Channel("c")
    try await bench.sourceEngine.addConsumer(.default, of: channel, maximumAttempts: 2)
    for index in 0..<3 {
      var message = Message(channel: channel, payload: Array("payload \(index)".utf8))
      message.headers = ["n": "\(index)"]
      message.deduplicationID = "id \(index)"
      try await bench.sourceEngine.publish(message)
    }
    let taken = try await bench.sourceEngine.receive(
      from: channel, maximumCount: 2, lease: .seconds(30))
    try await bench.sourceEngine.reject([taken[0].token], reason: "no")
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    return (bench, try bench.bytes())
  }

  private static func isEmpty(_ engine: PlainEngine) throws -> Bool {
    try engine.number("SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM import)") == 0
  }

  @Test func `a file that is cut anywhere is refused with a line, and changes nothing`()
    async throws
  {
    let (bench, whole) = try await Self.small()
    for count in 0..<whole.count {
      try bench.write(whole[..<count])
      let error = await #expect(throws: EngineError.self) {
        _ = try await bench.targetEngine.importMessages(from: bench.path)
      }
      #expect(error?.code == .invalidFile, "\(count)")
      #expect(error?.message.contains("line ") == true, "\(count): \(error?.message ?? "")")
    }
    #expect(try Self.isEmpty(bench.target))
    try bench.write(whole)
    #expect(try await bench.targetEngine.importMessages(from: bench.path).messageCount == 3)
  }

  @Test func `a byte that is changed anywhere is refused, and nothing is changed`() async throws {
    let (bench, whole) = try await Self.small()
    for (index, bit) in zip(whole.indices, (0..<8).cycled(whole.count)) {
      var bytes = whole
      bytes[index] ^= 1 << UInt8(bit)
      try bench.write(bytes)
      #expect(await bench.importCode() == .invalidFile, "byte \(index), bit \(bit)")
    }
    #expect(try Self.isEmpty(bench.target))
  }

  @Test func `without its digest a changed file is refused or makes a database that is whole`()
    async throws
  {
    let (bench, whole) = try await Self.small()
    let text = String(decoding: whole, as: UTF8.self)
    let digest = try #require(
      text.range(of: #","sha256":"[0-9a-f]{64}""#, options: .regularExpression))
    let bare = Array(text.replacingCharacters(in: digest, with: "").utf8)
    var taken = 0
    for index in stride(from: 0, to: bare.count, by: 19) {
      var bytes = bare
      bytes[index] ^= 1
      let target = try PlainEngine()
      let engine = try await MessagingEngine(pool: target.pool, time: target.time, isSecured: false)
      try bench.write(bytes)
      do throws(EngineError) {
        _ = try await engine.importMessages(from: bench.path)
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
    (#"{"record":"message","timetoken":"17000000000000000","channel":"c"}"#, "needs exactly one"),
    (#"{"record":"message","timetoken":"1700","channel":"c","payload":""}"#, "17 digits"),
    (
      #"{"record":"message","timetoken":17000000000000000,"channel":"c","payload":""}"#, "no string"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"","payload":""}"#, "is empty"
    ),
    (
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"","more":1}"#,
      "not known"
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
      "two things"
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
    (#"{"record":"letter"}"#, "not known"), (#"{"payload":"a"}"#, "no export"),
    ("", "not a JSON object"), (#"{"record":"channel","channel":"c",}"#, "lacks the name"),
    (#"{"record":"export","version":1}"#, "id"),
  ]

  @Test(arguments: refusals.indices)
  func `a line that is not as it should be is refused with its number`(index: Int) async throws {
    let (line, reason) = Self.refusals[index]
    let bench = try await ExchangeFixture()
    let id = String(repeating: "0f", count: 16)
    let text = """
      {"record":"export","version":1,"id":"\(id)","source":"\(id)","commitNumber":0,"highWater":"17000000000000000"}
      \(line)
      {"record":"end","messages":1,"lines":2}

      """
    try bench.write(text.utf8)
    let error = await #expect(throws: EngineError.self) {
      _ = try await bench.targetEngine.importMessages(from: bench.path)
    }
    #expect(error?.code == .invalidFile)
    #expect(error?.message.contains("line 2 ") == true, "\(error?.message ?? "")")
    #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    #expect(try Self.isEmpty(bench.target))
  }

  @Test(
    arguments: [
      (#","after":"16999999999999999""#, "", nil),
      (#","after":"17000000000000000""#, "", "line 2 has a message that the first line"),
      (#","channels":["c"]"#, "", nil),
      (#","channels":["d"]"#, "", "line 2 has a message that the first line"),
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
  func `what the lines say together is looked at, too`(
    choice: String, line: String, reason: String?
  ) async throws {
    let bench = try await ExchangeFixture()
    let id = String(repeating: "0f", count: 16)
    let lines =
      [
        #"{"record":"export","version":1,"id":"\#(id)","source":"\#(id)""# + choice
          + #","commitNumber":0,"highWater":"17000000000000000"}"#,
        #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":""}"#,
      ] + line.split(separator: "\n").map(String.init)
    let end = #"{"record":"end","messages":1,"lines":\#(lines.count)}"#
    try bench.write((lines + [end]).map { $0 + "\n" }.joined().utf8)
    do throws(EngineError) {
      _ = try await bench.targetEngine.importMessages(from: bench.path)
      #expect(reason == nil)
    } catch {
      #expect(error.code == .invalidFile)
      #expect(reason.map(error.message.contains) == true, "\(error.message)")
      #expect(try Self.isEmpty(bench.target))
    }
  }

  @Test func `a payload over the limit is refused with its line, before anything is changed`()
    async throws
  {
    let (bench, _) = try await Self.small()
    var configuration = EngineConfiguration()
    configuration.maximumPayloadByteCount = 8
    let engine = try await MessagingEngine(
      pool: bench.target.pool, time: bench.target.time, configuration: configuration,
      isSecured: false)
    let error = await #expect(throws: EngineError.self) {
      _ = try await engine.importMessages(from: bench.path)
    }
    #expect(error?.message.contains("has a payload of 9 bytes, the limit is 8") == true)
    #expect(try Self.isEmpty(bench.target))
  }

  @Test func `an export that was cut anywhere goes on without a gap or a double`() async throws {
    let (bench, whole) = try await Self.small()
    let partial = FilePath(bench.path.string + ".partial")
    let expected = try ExchangeFixture.dump(bench.source)
    for count in stride(from: 0, through: whole.count, by: 23) {
      try FileManager.default.removeItem(atPath: bench.path.string)
      try bench.write(whole[..<count], to: partial)
      let report = try await bench.sourceEngine.exportMessages(to: bench.path)
      #expect(report.messageCount == 3)
      #expect(!report.databaseChanged)
      let target = try PlainEngine()
      let engine = try await MessagingEngine(pool: target.pool, time: target.time, isSecured: false)
      _ = try await engine.importMessages(from: bench.path)
      let found = try ExchangeFixture.dump(target)
      try #require(found == expected, "\(count): \(found.difference(from: expected))")
    }
  }

  @Test func `an unfinished export goes on before a line that no import takes`() async throws {
    let (bench, whole) = try await Self.small()
    let partial = FilePath(bench.path.string + ".partial")
    let expected = try ExchangeFixture.dump(bench.source)
    try FileManager.default.removeItem(atPath: bench.path.string)
    // The second message's timetoken is beyond all: what came before it stays, it and the third come again.
    let place = whole.indices.filter { whole[$0...].starts(with: #"{"record":"message""#.utf8) }[1]
    let digit = place + Array(#"{"record":"message","timetoken":""#.utf8).count
    var changed = whole
    changed[digit] = UInt8(ascii: "9")
    try bench.write(changed, to: partial)
    let report = try await bench.sourceEngine.exportMessages(to: bench.path)
    #expect(report.messageCount == 3)
    #expect(report.resumedAfter == 1)
    _ = try await bench.targetEngine.importMessages(from: bench.path)
    #expect(try ExchangeFixture.dump(bench.target) == expected)
  }

  @Test func `an unfinished export of a later state of the database is refused, and kept`()
    async throws
  {
    let (bench, whole) = try await Self.small()
    let partial = FilePath(bench.path.string + ".partial")
    try FileManager.default.removeItem(atPath: bench.path.string)
    let digit = try #require(whole.firstRange(of: Array(#""highWater":""#.utf8))).upperBound
    var later = whole
    later[digit] = UInt8(ascii: "9")
    try bench.write(later, to: partial)
    let error = await #expect(throws: EngineError.self) {
      _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    }
    #expect(error?.message.contains("of a later state of this database") == true)
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial.string))) == later)
  }

  @Test func `a file that only has the name of an unfinished export is refused, and kept`()
    async throws
  {
    let bench = try await ExchangeFixture()
    let partial = FilePath(bench.path.string + ".partial")
    let other = Array("{\"record\":\"other\"}\nsomebody else's\n".utf8)
    try bench.write(other, to: partial)
    await #expect {
      _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial.string))) == other)
  }

  @Test func `an unfinished export of something else is refused, and kept`() async throws {
    let (bench, whole) = try await Self.small()
    let partial = FilePath(bench.path.string + ".partial")
    try FileManager.default.removeItem(atPath: bench.path.string)
    try bench.write(whole[..<(whole.count / 2)], to: partial)
    let channel = try Channel("c")
    await #expect {
      _ = try await bench.sourceEngine.exportMessages(
        MessageSelection(channels: [channel]), to: bench.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    await #expect {
      _ = try await bench.targetEngine.exportMessages(to: bench.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(FileManager.default.fileExists(atPath: partial.string))
  }

  @Test func `a whole export of something else that only lacks its name is refused, and kept`()
    async throws
  {
    let (bench, whole) = try await Self.small()
    let partial = FilePath(bench.path.string + ".partial")
    try FileManager.default.moveItem(atPath: bench.path.string, toPath: partial.string)
    await #expect {
      _ = try await bench.targetEngine.exportMessages(to: bench.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial.string))) == whole)
  }

  @Test func `a whole export that only lacks its name takes what came since, and says so`()
    async throws
  {
    let (bench, _) = try await Self.small()
    let partial = FilePath(bench.path.string + ".partial")
    try FileManager.default.moveItem(atPath: bench.path.string, toPath: partial.string)
    let unchanged = try await bench.sourceEngine.exportMessages(to: bench.path)
    #expect(unchanged.messageCount == 3)
    #expect(!unchanged.databaseChanged)
    try FileManager.default.moveItem(atPath: bench.path.string, toPath: partial.string)
    try await bench.sourceEngine.publish(Message(channel: try Channel("c"), payload: [1]))
    let report = try await bench.sourceEngine.exportMessages(to: bench.path)
    #expect(report.messageCount == 4)
    #expect(report.databaseChanged)
    #expect(try await bench.targetEngine.importMessages(from: bench.path).messageCount == 4)
    #expect(try ExchangeFixture.faults(bench.target) == [])
  }

  @Test func `a pipe that has the name of an unfinished export is refused`() async throws {
    let (bench, _) = try await Self.small()
    try FileManager.default.removeItem(atPath: bench.path.string)
    let pipe = bench.path.string + ".partial"
    #expect(mkfifo(pipe, 0o600) == 0)
    // Who reads it gets something, and does not wait for ever.
    let writing = open(pipe, O_RDWR)
    defer { close(writing) }
    #expect(write(writing, "x\n", 2) == 2)
    await #expect {
      _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    } throws: { ($0 as? EngineError)?.code == .foreignFile }
  }

  @Test(arguments: ["mode", "owner", "hard link", "symbolic link"])
  func `an unfinished export that another user could have made is refused, and kept`(
    _ planted: String
  ) async throws {
    let (bench, whole) = try await Self.small()
    let partial = bench.path.string + ".partial"
    let victim = bench.path.string + ".victim"
    try FileManager.default.removeItem(atPath: bench.path.string)
    // What an export of the same messages has left: nothing but its file is wrong.
    let beginning = whole[..<(whole.count / 2)]
    try bench.write(beginning, to: FilePath(victim))
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
      _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    }
    #expect(error?.code == .foreignFile)
    #expect(error?.hint?.contains("remove it") == true)
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: partial))) == Array(beginning))
    #expect(!FileManager.default.fileExists(atPath: bench.path.string))
  }
}

extension Range<Int> {
  /// The numbers again and again, so many of them.
  fileprivate func cycled(_ count: Int) -> [Int] {
    (0..<count).map { lowerBound + $0 % self.count }
  }
}
