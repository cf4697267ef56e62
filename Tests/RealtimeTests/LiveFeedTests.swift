import FileLayer
import Glibc
import GRDB
import MessagingQueue
import Realtime
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct LiveFeedTests {
  /// The texts that a feed has delivered.
  private final class Received: Sendable {
    private let list = Mutex<[String]>([])

    func take(_ events: [LiveEvent]) {
      list.withLock { list in
        list += events.map { String(decoding: $0.message.payload, as: UTF8.self) }
      }
    }

    var texts: [String] { list.withLock { $0 } }

    func wait(for last: String) async throws {
      try await eventually { texts.last == last }
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

  @Test func `events of several threads come on one at a time, in their order`() async throws {
    try await whileDistributing {
      let isInside = Atomic(false)
      let places = Mutex<[Timetoken]>([])
      let feed = LiveFeed(realtime) { events in
        let wasInside = isInside.exchange(true, ordering: .sequentiallyConsistent)
        #expect(!wasInside)
        // Long enough for another thread to come.
        usleep(100)
        places.withLock { $0 += events.map(\.message.timetoken) }
        isInside.store(false, ordering: .sequentiallyConsistent)
      }
      feed.add(a)
      await withThrowingTaskGroup { group in
        for number in 0..<8 {
          group.addTask { [self] in
            for _ in 0..<50 {
              if number < 2 {
                try await publish("stored", to: a)
              } else {
                try await realtime.send([Message(channel: a, payload: [1])])
              }
            }
          }
        }
      }
      try await eventually { places.withLock { $0.count } >= 400 }
      let all = places.withLock { $0 }
      #expect(all.count == 400)
      #expect(zip(all, all.dropFirst()).allSatisfy { $0 < $1 })
      feed.end()
    }
  }

  @Test func `the end of a feed and of the distribution release what it holds`() async throws {
    weak var ended: Received?
    weak var left: Received?
    try await whileDistributing {
      for isEnded in [true, false] {
        let received = Received()
        let feed = LiveFeed(realtime) { received.take($0) }
        feed.add(a)
        try await publish("1", to: a)
        try await received.wait(for: "1")
        if isEnded {
          ended = received
          feed.end()
          feed.add(a)
        } else {
          left = received
        }
      }
      #expect(ended == nil)
      #expect(left != nil)
    }
    #expect(left == nil)
    let late = LiveFeed(realtime) { [received] in received.take($0) }
    late.add(a)
    late.end()
  }
}
