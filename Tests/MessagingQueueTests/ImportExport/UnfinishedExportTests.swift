import Foundation
import GRDB
import Glibc
import MessagingQueue
import SystemPackage
import Testing

/// An export that finds the file of an earlier, unfinished export, or another file in its place.
@Suite struct UnfinishedExportTests {
  private func exportError(
    _ engine: MessagingEngine, _ fixture: ExchangeFixture
  ) async -> EngineError? {
    await engineError { _ = try await engine.exportMessages(to: fixture.path) }
  }

  @Test func `an export cut at any byte continues without a gap or a duplicate`() async throws {
    let (fixture, whole) = try await ExchangeFixture.small()
    let expected = try ExchangeFixture.dump(fixture.source)
    for count in stride(from: 0, through: whole.count, by: 23) {
      try FileManager.default.removeItem(atPath: fixture.path.string)
      try fixture.write(whole[..<count], to: fixture.partial)
      let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
      #expect(report.messageCount == 3)
      #expect(!report.databaseChanged)
      let target = try PlainEngine()
      let engine = try target.engine(isSecured: false)
      _ = try await engine.importMessages(from: fixture.path)
      let found = try ExchangeFixture.dump(target)
      try #require(found == expected, "\(count): \(found.difference(from: expected))")
    }
  }

  @Test func `an unfinished export continues before a line that an import would refuse`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    let expected = try ExchangeFixture.dump(fixture.source)
    try FileManager.default.removeItem(atPath: fixture.path.string)
    // The second message's timetoken is too great: the first message stays, the second and third
    // are written again.
    let place = whole.indices.filter { whole[$0...].starts(with: #"{"record":"message""#.utf8) }[1]
    let digit = place + Array(#"{"record":"message","timetoken":""#.utf8).count
    var changed = whole
    changed[digit] = UInt8(ascii: "9")
    try fixture.write(changed, to: fixture.partial)
    let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(report.messageCount == 3)
    #expect(report.resumedAfter == 1)
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(try ExchangeFixture.dump(fixture.target) == expected)
  }

  @Test func `an export refuses and keeps an unfinished file of a later state of the database`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    try FileManager.default.removeItem(atPath: fixture.path.string)
    let digit = try #require(whole.firstRange(of: Array(#""highWater":""#.utf8))).upperBound
    var later = whole
    later[digit] = UInt8(ascii: "9")
    try fixture.write(later, to: fixture.partial)
    let error = await exportError(fixture.sourceEngine, fixture)
    #expect(error?.message.contains("of a later state of this database") == true)
    #expect(try fixture.bytes(of: fixture.partial) == later)
  }

  @Test func `an export is not continued if another message has the timetoken of one of its own`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    try FileManager.default.removeItem(atPath: fixture.path.string)
    let payload = try #require(whole.firstRange(of: Array(#""payload":""#.utf8))).upperBound
    var other = whole
    other[payload] = other[payload] == UInt8(ascii: "x") ? UInt8(ascii: "y") : UInt8(ascii: "x")
    try fixture.write(other, to: fixture.partial)
    let error = await exportError(fixture.sourceEngine, fixture)
    #expect(error?.message.contains("lacks message") == true)
    #expect(try fixture.bytes(of: fixture.partial) == other)
  }

  @Test func `an export whose file has a message that is gone says that the queue changed`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    try FileManager.default.removeItem(atPath: fixture.path.string)
    try fixture.write(whole, to: fixture.partial)
    // Without a commit of the engine, as in an older copy with the same number of commits.
    try await fixture.source.pool.write { db in
      try db.execute(
        sql: "DELETE FROM message WHERE timetoken = (SELECT min(timetoken) FROM message)")
    }
    let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(report.databaseChanged)
    #expect(report.messageCount == 3)
  }

  @Test func `an export refuses and keeps another file named like an unfinished export`()
    async throws
  {
    let fixture = try await ExchangeFixture()
    let other = Array("{\"record\":\"other\"}\nsomebody else's\n".utf8)
    try fixture.write(other, to: fixture.partial)
    #expect(await exportError(fixture.sourceEngine, fixture)?.code == .alreadyExists)
    #expect(try fixture.bytes(of: fixture.partial) == other)
  }

  @Test func `an export refuses and keeps an unfinished export of other messages`() async throws {
    let (fixture, whole) = try await ExchangeFixture.small()
    try FileManager.default.removeItem(atPath: fixture.path.string)
    try fixture.write(whole[..<(whole.count / 2)], to: fixture.partial)
    let selection = MessageSelection(channels: [try Channel("c")])
    #expect(
      await code { _ = try await fixture.sourceEngine.exportMessages(selection, to: fixture.path) }
        == .alreadyExists)
    #expect(await exportError(fixture.targetEngine, fixture)?.code == .alreadyExists)
    #expect(FileManager.default.fileExists(atPath: fixture.partial.string))
  }

  @Test func `an export refuses and keeps a complete, unnamed export of other messages`()
    async throws
  {
    let (fixture, whole) = try await ExchangeFixture.small()
    try FileManager.default.moveItem(atPath: fixture.path.string, toPath: fixture.partial.string)
    #expect(await exportError(fixture.targetEngine, fixture)?.code == .alreadyExists)
    #expect(try fixture.bytes(of: fixture.partial) == whole)
  }

  @Test func `a complete, unnamed export takes the messages since then and reports it`()
    async throws
  {
    let (fixture, _) = try await ExchangeFixture.small()
    try FileManager.default.moveItem(atPath: fixture.path.string, toPath: fixture.partial.string)
    let unchanged = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(unchanged.messageCount == 3)
    #expect(!unchanged.databaseChanged)
    try FileManager.default.moveItem(atPath: fixture.path.string, toPath: fixture.partial.string)
    try await fixture.sourceEngine.publish(Message(channel: try Channel("c"), payload: [1]))
    let report = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(report.messageCount == 4)
    #expect(report.databaseChanged)
    #expect(try await fixture.targetEngine.importMessages(from: fixture.path).messageCount == 4)
    #expect(try ExchangeFixture.faults(fixture.target) == [])
  }

  @Test func `an export refuses a pipe named like an unfinished export`() async throws {
    let (fixture, _) = try await ExchangeFixture.small()
    try FileManager.default.removeItem(atPath: fixture.path.string)
    let pipe = fixture.partial.string
    #expect(mkfifo(pipe, 0o600) == 0)
    // A writer gives the reader of the pipe some bytes, so that it does not block.
    let writing = open(pipe, O_RDWR)
    defer { close(writing) }
    #expect(write(writing, "x\n", 2) == 2)
    #expect(await exportError(fixture.sourceEngine, fixture)?.code == .foreignFile)
  }

  @Test(arguments: ["mode", "owner", "hard link", "symbolic link"])
  func `an export refuses and keeps an unfinished file that another user could have made`(
    _ planted: String
  ) async throws {
    let (fixture, whole) = try await ExchangeFixture.small()
    let partial = fixture.partial.string
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
    let error = await exportError(fixture.sourceEngine, fixture)
    #expect(error?.code == .foreignFile)
    #expect(error?.hint?.contains("remove it") == true)
    #expect(try fixture.bytes(of: fixture.partial) == Array(beginning))
    #expect(!FileManager.default.fileExists(atPath: fixture.path.string))
  }
}
