import FileLayer
import Foundation
import GRDB
import MessagingQueue
import SystemPackage
import Testing

@Suite struct ExchangeTests {
  @Test func `what is exported and imported elsewhere is the same queue`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    let exported = try await bench.sourceEngine.exportMessages(to: bench.path)
    let imported = try await bench.targetEngine.importMessages(from: bench.path)
    #expect(imported.messageCount == exported.messageCount)
    #expect(imported.renumberedCount == 0)
    #expect(try ExchangeFixture.dump(bench.target) == ExchangeFixture.dump(bench.source))
    #expect(try ExchangeFixture.faults(bench.source) == [])
    #expect(try ExchangeFixture.faults(bench.target) == [])
    let mode = try FileManager.default.attributesOfItem(atPath: bench.path.string)
    #expect(mode[.posixPermissions] as? Int == 0o600)
  }

  @Test func `consumers go on where they were`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    _ = try await bench.targetEngine.importMessages(from: bench.path)
    // Leases end by themselves here, and have ended there.
    for engine in [bench.source, bench.target] { engine.time.advance(by: .seconds(61)) }
    for (channel, consumer) in [("a", "one"), ("a", "two"), ("kept", "default")] {
      let there = try await ExchangeFixture.drain(bench.targetEngine, channel, for: consumer)
      let here = try await ExchangeFixture.drain(bench.sourceEngine, channel, for: consumer)
      #expect(Set(there) == Set(here), "\(consumer)")
      #expect(there.count == here.count)
    }
    var again = Message(channel: try Channel("a"), payload: [1])
    again.deduplicationID = "id 22"
    let first = try await bench.sourceEngine.publish(again)
    #expect(try await bench.targetEngine.publish(again) == first)
  }

  @Test func `a file that was imported is imported no more`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    _ = try await bench.targetEngine.importMessages(from: bench.path)
    let dump = try ExchangeFixture.dump(bench.target)
    let again = try await bench.targetEngine.importMessages(from: bench.path)
    #expect(again.wasAlreadyImported)
    #expect(try ExchangeFixture.dump(bench.target) == dump)
    // Nor are the same messages in another file of the same database.
    try FileManager.default.removeItem(atPath: bench.path.string)
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    #expect(await bench.importCode() == .alreadyExists)
    #expect(try ExchangeFixture.dump(bench.target) == dump)
  }

  @Test func `what came after an export is taken with the next`() async throws {
    let bench = try await ExchangeFixture()
    let channel = try Channel("a")
    try bench.source.database.publish(["one", "two"], to: channel)
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    _ = try await bench.targetEngine.importMessages(from: bench.path)
    let last = try #require(try await bench.targetEngine.history(of: channel).last?.timetoken)
    try bench.source.database.publish(["three"], to: channel)
    try FileManager.default.removeItem(atPath: bench.path.string)
    _ = try await bench.sourceEngine.exportMessages(
      MessageSelection(after: last), to: bench.path)
    #expect(try await bench.targetEngine.importMessages(from: bench.path).keptCount == 1)
    let texts = try await bench.targetEngine.history(of: channel).map {
      String(decoding: $0.payload, as: UTF8.self)
    }
    #expect(texts == ["one", "two", "three"])
  }

  @Test func `channels are taken apart, and one that is not there is refused`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    let kept = try Channel("kept")
    let report = try await bench.sourceEngine.exportMessages(
      MessageSelection(channels: [kept]), to: bench.path)
    #expect(report.messageCount == 5)
    _ = try await bench.targetEngine.importMessages(from: bench.path)
    #expect(try await bench.targetEngine.channels().map(\.channel) == [kept])
    await #expect(throws: EngineError.self) {
      let missing = MessageSelection(channels: [try Channel("missing")])
      _ = try await bench.sourceEngine.exportMessages(missing, write: { _ in })
    }
  }

  @Test func `messages that come among others get new timetokens in their order`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    // Here are messages of the same channel, which a consumer of the same name has not seen.
    bench.target.time.advance(by: .seconds(3600))
    let a = try Channel("a")
    try await bench.targetEngine.addConsumer(try Consumer("one"), of: a, maximumAttempts: nil)
    try bench.target.database.publish(["own 1", "own 2"], to: a)
    let cursor = try #require(try await bench.targetEngine.history(of: a).last?.timetoken)
    let report = try await bench.targetEngine.importMessages(from: bench.path)
    #expect(report.keptCount == 0)
    #expect(try ExchangeFixture.faults(bench.target) == [])
    // Behind a reader's cursor nothing appears.
    let after = try await bench.targetEngine.history(of: a, from: cursor, maximumCount: 1000)
    let source = try await bench.sourceEngine.history(of: a, maximumCount: 1000)
    #expect(after.map(\.payload) == source.map(\.payload))
    for engine in [bench.source, bench.target] { engine.time.advance(by: .seconds(61)) }
    let mine = try await ExchangeFixture.drain(bench.targetEngine, "a", for: "one")
    let theirs = try await ExchangeFixture.drain(bench.sourceEngine, "a", for: "one")
    #expect(mine.filter { $0.starts(with: Array("own".utf8)) }.count == 2)
    #expect(
      mine.filter { !$0.starts(with: Array("own".utf8)) }.map { Data($0) }.sorted {
        $0.lexicographicallyPrecedes($1)
      }
        == theirs.map { Data($0) }.sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test func `an export of the database itself is refused`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    await #expect {
      _ = try await bench.sourceEngine.importMessages(from: bench.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
  }

  @Test func `a name that is taken is left alone`() async throws {
    let bench = try await ExchangeFixture()
    try bench.write([1, 2, 3])
    await #expect {
      _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    } throws: { ($0 as? EngineError)?.code == .alreadyExists }
    #expect(try bench.bytes() == [1, 2, 3])
    #expect(!FileManager.default.fileExists(atPath: bench.path.string + ".partial"))
  }
}
