import Foundation
import GRDB
import MessagingQueue
import Testing

@Suite struct WakeTests {
  let channel: Channel

  init() throws { channel = try Channel("orders") }

  private func next(_ iterator: inout LogMessages.AsyncIterator) async throws -> String? {
    try await iterator.next()?.text
  }

  @Test func `a notifier that cannot be made fails no publish, and others still get the message`()
    async throws
  {
    let plain = try PlainEngine()
    // A directory in the notifier's place: it can neither be opened nor replaced.
    try FileManager.default.createDirectory(
      atPath: plain.pool.path + "-notify", withIntermediateDirectories: false)
    let engine = try await MessagingEngine(pool: plain.pool, time: plain.time, isSecured: true)
    let pool = try DatabasePool(path: plain.pool.path)
    let other = try await MessagingEngine(
      pool: pool, time: plain.time, isSecured: true, closePool: { try pool.close() })
    var near = try await engine.messages(of: channel).makeAsyncIterator()
    var far = try await other.messages(of: channel).makeAsyncIterator()
    for text in ["first", "second"] {
      try await engine.publish([text], to: channel)
      #expect(try await next(&near) == text)
      #expect(try await next(&far) == text)
    }
    try await engine.stop()
    try await other.stop()
  }

  @Test func `a notifier that is deleted meanwhile keeps nobody from hearing`() async throws {
    let logged = try await LoggedEngine()
    let other = try await logged.neighbour()
    let messages = try await logged.engine.messages(of: channel)
    let (texts, received) = AsyncStream<String>.makeStream()
    let reading = Task { for try await message in messages { received.yield(message.text) } }
    var iterator = texts.makeAsyncIterator()
    for index in 0..<5 {
      try await Task.sleep(for: .milliseconds(5))
      try? FileManager.default.removeItem(atPath: logged.bellPath)
      try await other.publish(["\(index)"], to: channel)
      #expect(await iterator.next() == "\(index)")
    }
    reading.cancel()
    try await reading.value
    #expect(FileManager.default.fileExists(atPath: logged.bellPath))
    try await other.stop()
  }

  @Test func `what is rolled back wakes nobody`() async throws {
    let notifier = ChangeNotifier()
    let plain = try PlainEngine()
    let database = try EngineDatabase(pool: plain.pool, time: plain.time, notifier: notifier)
    let count = notifier.generation
    try await plain.pool.writeWithoutTransaction { db in
      try db.inTransaction(.immediate) {
        _ = try database.publish([Message(channel: channel, payload: [1])], in: db)
        return .rollback
      }
    }
    #expect(notifier.generation == count)
    try await plain.pool.writeWithoutTransaction { db in
      try db.inTransaction(.immediate) {
        _ = try database.publish([Message(channel: channel, payload: [1])], in: db)
        #expect(notifier.generation == count)
        return .commit
      }
    }
    #expect(notifier.generation > count)
  }

  @Test func `an engine that is dropped takes its thread along`() async throws {
    weak var dropped: ChangeNotifier?
    do {
      let notifier = ChangeNotifier(device: TestBell())
      dropped = notifier
      let count = notifier.generation
      #expect(await notifier.waitForChange(after: count) == .changed)
    }
    for _ in 0..<1000 where dropped != nil { try await Task.sleep(for: .milliseconds(10)) }
    #expect(dropped == nil)
  }

  @Test func `a publication wakes before its publisher is told`() async throws {
    let logged = try await LoggedEngine()
    let notifier = logged.engine.notifier
    let count = notifier.generation
    try await logged.engine.publish(["a"], to: channel)
    #expect(notifier.generation > count)
  }
}
