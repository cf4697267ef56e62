import FileLayer
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import SystemPackage
import Testing

@Suite struct ExchangeTests {
  @Test func `an import of an export gives the same queue`() async throws {
    let fixture = try await ExchangeFixture()
    try await fixture.fill()
    let exported = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    let imported = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(imported.messageCount == exported.messageCount)
    #expect(imported.renumberedCount == 0)
    #expect(try ExchangeFixture.dump(fixture.target) == ExchangeFixture.dump(fixture.source))
    #expect(try ExchangeFixture.faults(fixture.source) == [])
    #expect(try ExchangeFixture.faults(fixture.target) == [])
    let mode = try FileManager.default.attributesOfItem(atPath: fixture.path.string)
    #expect(mode[.posixPermissions] as? Int == 0o600)
  }

  @Test func `imported consumers continue where they were`() async throws {
    let fixture = try await ExchangeFixture.exported()
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    // Leases on the source end here, as they have ended on the target.
    for engine in [fixture.source, fixture.target] { engine.time.advance(by: .seconds(61)) }
    for (channel, consumer) in [("a", "one"), ("a", "two"), ("kept", "default")] {
      let there = try await ExchangeFixture.drain(fixture.targetEngine, channel, for: consumer)
      let here = try await ExchangeFixture.drain(fixture.sourceEngine, channel, for: consumer)
      #expect(Set(there) == Set(here), "\(consumer)")
      #expect(there.count == here.count)
    }
    var again = Message(channel: try Channel("a"), payload: [1])
    again.deduplicationID = "id 22"
    let first = try await fixture.sourceEngine.publish(again)
    #expect(try await fixture.targetEngine.publish(again) == first)
  }

  @Test func `importing a file again changes nothing`() async throws {
    let fixture = try await ExchangeFixture.exported()
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    let dump = try ExchangeFixture.dump(fixture.target)
    let again = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(again.wasAlreadyImported)
    #expect(try ExchangeFixture.dump(fixture.target) == dump)
    // The same messages in another file of the same database are refused, too.
    try FileManager.default.removeItem(atPath: fixture.path.string)
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    #expect(await fixture.importCode() == .alreadyExists)
    #expect(try ExchangeFixture.dump(fixture.target) == dump)
  }

  @Test func `a later export takes the messages since the last one`() async throws {
    let fixture = try await ExchangeFixture()
    let channel = try Channel("a")
    try fixture.source.database.publish(["one", "two"], to: channel)
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    let last = try #require(try await fixture.targetEngine.history(of: channel).last?.timetoken)
    try fixture.source.database.publish(["three"], to: channel)
    try FileManager.default.removeItem(atPath: fixture.path.string)
    _ = try await fixture.sourceEngine.exportMessages(
      MessageSelection(after: last), to: fixture.path)
    #expect(try await fixture.targetEngine.importMessages(from: fixture.path).keptCount == 1)
    #expect(
      try await fixture.targetEngine.history(of: channel).map(\.text) == ["one", "two", "three"])
  }

  @Test func `an export takes the selected channels and refuses an unknown one`() async throws {
    let fixture = try await ExchangeFixture()
    try await fixture.fill()
    let kept = try Channel("kept")
    let report = try await fixture.sourceEngine.exportMessages(
      MessageSelection(channels: [kept]), to: fixture.path)
    #expect(report.messageCount == 5)
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(try await fixture.targetEngine.channels().map(\.channel) == [kept])
    await #expect(throws: EngineError.self) {
      let missing = MessageSelection(channels: [try Channel("missing")])
      _ = try await fixture.sourceEngine.exportMessages(missing, write: { _ in })
    }
  }

  @Test func `imported messages among newer ones get new timetokens in their order`() async throws {
    let fixture = try await ExchangeFixture.exported()
    // The target has messages of the same channel, which a consumer with the same name has not
    // seen.
    fixture.target.time.advance(by: .seconds(3600))
    let a = try Channel("a")
    try await fixture.targetEngine.addConsumer(try Consumer("one"), of: a, maximumAttempts: nil)
    try fixture.target.database.publish(["own 1", "own 2"], to: a)
    let cursor = try #require(try await fixture.targetEngine.history(of: a).last?.timetoken)
    let report = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(report.keptCount == 0)
    #expect(try ExchangeFixture.faults(fixture.target) == [])
    // No message appears before a reader's cursor.
    let after = try await fixture.targetEngine.history(of: a, from: cursor, maximumCount: 1000)
    let source = try await fixture.sourceEngine.history(of: a, maximumCount: 1000)
    #expect(after.map(\.payload) == source.map(\.payload))
    for engine in [fixture.source, fixture.target] { engine.time.advance(by: .seconds(61)) }
    let mine = try await ExchangeFixture.drain(fixture.targetEngine, "a", for: "one")
    let theirs = try await ExchangeFixture.drain(fixture.sourceEngine, "a", for: "one")
    let imported = mine.filter { !$0.starts(with: "own".utf8) }
    #expect(mine.count - imported.count == 2)
    #expect(imported.map(\.description).sorted() == theirs.map(\.description).sorted())
  }

  @Test func `an import refuses an export of the same database`() async throws {
    let fixture = try await ExchangeFixture.exported()
    let told = await code { _ = try await fixture.sourceEngine.importMessages(from: fixture.path) }
    #expect(told == .alreadyExists)
  }

  @Test(
    arguments: [
      (["a"], nil, nil, "export the channels that were not in that export"),
      (["a"], nil, ["a"], "export the rest with --after"),
      (["a"], nil, ["a", "b"], "export the channels that were not in that export"),
      (nil, nil, ["b"], "export the rest with --after"), (nil, 0, nil, "into a new home"),
      (["b"], 0, ["b"], "into a new home"),
    ] as [([String]?, Int?, [String]?, String)])
  func `the hint for a second export loses no message`(
    first: [String]?, after: Int?, second: [String]?, hint: String
  ) async throws {
    let fixture = try await ExchangeFixture()
    var timetokens: [Timetoken] = []
    for channel in ["b", "a", "b", "a"] {
      timetokens.append(
        try await fixture.sourceEngine.publish(Message(channel: Channel(channel), payload: [1])))
    }
    func selection(_ names: [String]?, after: Int? = nil) throws -> MessageSelection {
      MessageSelection(
        channels: try names.map { Set(try $0.map { try Channel($0) }) },
        after: after.map { timetokens[$0] })
    }
    let engines = (source: fixture.sourceEngine, target: fixture.targetEngine)
    _ = try await engines.source.exportMessages(selection(first, after: after), to: fixture.path)
    _ = try await engines.target.importMessages(from: fixture.path)
    let other = FilePath(fixture.path.string + "-2")
    _ = try await engines.source.exportMessages(selection(second), to: other)
    let error = await #expect(throws: EngineError.self) {
      _ = try await engines.target.importMessages(from: other)
    }
    #expect(error?.code == .alreadyExists)
    #expect(error?.hint?.contains(hint) == true, "\(error?.hint ?? "")")
  }

  @Test func `a reader with a cursor notices a purge behind an import into a prepared channel`()
    async throws
  {
    let fixture = try await ExchangeFixture()
    let channel = Channel.orders
    for payload in [1, 2] as [UInt8] {
      try await fixture.sourceEngine.publish(Message(channel: channel, payload: [payload]))
    }
    _ = try await fixture.sourceEngine.purge(channel)
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    try await fixture.targetEngine.addConsumer(.default, of: channel)
    _ = try await fixture.targetEngine.importMessages(from: fixture.path)
    let marks = try [fixture.source, fixture.target].map {
      try $0.number("SELECT removed_through FROM channel")
    }
    #expect(try #require(marks[0]) > 0 && marks[0] == marks[1])
  }

  @Test func `an export leaves an existing file unchanged`() async throws {
    let fixture = try await ExchangeFixture()
    try fixture.write([1, 2, 3])
    let told = await code { _ = try await fixture.sourceEngine.exportMessages(to: fixture.path) }
    #expect(told == .alreadyExists)
    #expect(try fixture.bytes() == [1, 2, 3])
    #expect(!FileManager.default.fileExists(atPath: fixture.path.string + ".partial"))
  }
}
