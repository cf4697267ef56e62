import FileLayer
import GRDB
import MessagingQueue
import Realtime
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct LiveFeedTests {
  /// The texts that a feed has delivered.
  private final class Received: Sendable {
    private let list = Mutex<[String]>([])

    func take(_ result: Result<[LiveEvent], EngineError>) {
      guard case .success(let events) = result else { return }
      list.withLock { list in
        list += events.map { String(decoding: $0.message.payload, as: UTF8.self) }
      }
    }

    var texts: [String] { list.withLock { $0 } }

    func wait(for last: String) async throws {
      while texts.last != last { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  private let scratch = ScratchFolder()
  private let engine: MessagingEngine
  private let realtime: Realtime
  private let received = Received()
  private let (a, b): (Channel, Channel)

  init() async throws {
    engine = try MessagingEngine(
      pool: DatabasePool(path: scratch.path("messaging.db")), time: SystemTimeSource(),
      configuration: EngineConfiguration(), isSecured: true)
    realtime = try await Realtime(engine)
    a = try Channel("shop/a")
    b = try Channel("shop/b")
  }

  private func whileDistributing(_ body: () async throws -> Void) async throws {
    let run = Task { try await realtime.run() }
    try await body()
    run.cancel()
    try await run.value
  }

  private func publish(_ text: String, to channel: Channel) async throws {
    try await engine.publish(Message(channel: channel, payload: Array(text.utf8)))
  }

  @Test func `a channel has its events from its addition to its removal`() async throws {
    try await whileDistributing {
      let feed = LiveFeed(realtime) { [received] in received.take($0) }
      feed.add(b)
      try await publish("before", to: a)
      try await publish("b", to: b)
      try await received.wait(for: "b")
      feed.add(a)
      feed.add(a)
      try await publish("a", to: a)
      try await received.wait(for: "a")
      feed.remove(a)
      try await publish("after", to: a)
      try await publish("end", to: b)
      try await received.wait(for: "end")
      #expect(received.texts == ["b", "a", "end"])
      feed.end()
      #expect(realtime.waitingCount == 0)
    }
  }

  @Test func `a channel misses and repeats nothing while others come and go`() async throws {
    try await whileDistributing {
      let feed = LiveFeed(realtime) { [received] in received.take($0) }
      feed.add(a)
      let changes = Task {
        while !Task.isCancelled {
          feed.add(b)
          await Task.yield()
          feed.remove(b)
        }
      }
      for number in 0..<500 { try await publish("\(number)", to: a) }
      try await received.wait(for: "499")
      changes.cancel()
      await changes.value
      #expect(received.texts == (0..<500).map { "\($0)" })
      feed.end()
    }
  }

  @Test func `changes that are polled later together lose and repeat nothing`() async throws {
    let later = Mutex<[@Sendable () -> Void]>([])
    func poll() {
      let bodies = later.withLock { later in
        defer { later = [] }
        return later
      }
      for body in bodies { body() }
    }
    try await whileDistributing {
      let feed = LiveFeed(realtime, schedule: { body in later.withLock { $0.append(body) } }) {
        [received] in received.take($0)
      }
      feed.add(a)
      poll()
      try await publish("1", to: a)
      try await received.wait(for: "1")
      let place = realtime.place
      feed.add(b)
      feed.remove(a)
      feed.add(a)
      for number in 2...4 { try await publish("\(number)", to: number == 3 ? b : a) }
      while realtime.place == place { try await Task.sleep(for: .milliseconds(1)) }
      #expect(received.texts == ["1"])
      #expect(realtime.waitingCount == 0)
      poll()
      try await received.wait(for: "4")
      #expect(received.texts == ["1", "2", "3", "4"])
      feed.end()
    }
  }

  @Test func `the end of the distribution ends a feed`() async throws {
    let ends = AsyncStream.makeStream(of: EngineError.Code.self)
    try await whileDistributing {
      let feed = LiveFeed(realtime) { result in
        if case .failure(let error) = result { ends.continuation.yield(error.code) }
      }
      feed.add(a)
    }
    var iterator = ends.stream.makeAsyncIterator()
    #expect(await iterator.next() == .stopped)
  }
}
