import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

@Suite struct WakeTests {
  let channel = Channel.orders

  private func next(_ iterator: inout LogMessages.AsyncIterator) async throws -> String? {
    try await iterator.next()?.text
  }

  @Test func `a publish succeeds without a notification file, and other engines get the message`()
    async throws
  {
    let plain = try PlainEngine()
    // A directory with the file's name cannot be opened or replaced.
    try FileManager.default.createDirectory(
      atPath: plain.pool.path + "-notify", withIntermediateDirectories: false)
    let engine = try plain.engine()
    let other = try plain.neighbour()
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

  @Test func `receivers get messages after the notification file was deleted`() async throws {
    let plain = try PlainEngine()
    let engine = try plain.engine()
    let notifications = plain.pool.path + "-notify"
    let other = try plain.neighbour()
    let messages = try await engine.messages(of: channel)
    let (texts, received) = AsyncStream<String>.makeStream()
    let reading = Task { for try await message in messages { received.yield(message.text) } }
    var iterator = texts.makeAsyncIterator()
    for index in 0..<5 {
      try await eventually("the reader waits") { engine.notifier.waiterCount > 0 }
      try? FileManager.default.removeItem(atPath: notifications)
      try await other.publish(["\(index)"], to: channel)
      #expect(await iterator.next() == "\(index)")
    }
    reading.cancel()
    try await reading.value
    #expect(FileManager.default.fileExists(atPath: notifications))
    try await other.stop()
  }

  @Test func `a rollback wakes no waiter`() async throws {
    let plain = try PlainEngine()
    let engine = plain.database.engine
    let notifier = engine.notifier
    let count = notifier.generation
    for isCommitted in [false, true] {
      try await plain.pool.writeWithoutTransaction { db in
        try db.inTransaction(.immediate) {
          try engine.publish([Message(channel: channel, payload: [1])], in: db)
          #expect(notifier.generation == count)
          return isCommitted ? .commit : .rollback
        }
      }
      #expect((notifier.generation > count) == isCommitted)
    }
  }

  @Test func `releasing an engine ends its notification thread`() async throws {
    weak var dropped: ChangeNotifier?
    do {
      let notifier = ChangeNotifier(transport: TestTransport())
      dropped = notifier
      let count = notifier.generation
      #expect(await notifier.waitForChange(after: count) == .changed)
    }
    try await eventually { dropped == nil }
  }

  @Test func `a publication wakes waiters before publish() returns`() async throws {
    let plain = try PlainEngine()
    let engine = try plain.engine()
    let count = engine.notifier.generation
    try await engine.publish(["a"], to: channel)
    #expect(engine.notifier.generation > count)
  }
}
