import FileRecording
import GRDB
import TestSupport
@testable import MessagingQueue
import MetricsTestKit
import Testing

@Suite struct CounterTests {
  private let orders = Channel.orders
  private let observed: ObservedEngine
  private var engine: MessagingEngine { observed.engine }

  init() async throws { observed = try await ObservedEngine() }

  @Test func `each operation counts its messages`() async throws {
    try await engine.addConsumer(.default, of: orders, maximumAttempts: 3)
    try await observed.publish("a", "b", "c", "d", "e", to: orders)
    #expect(observed.count("messages_published") == 5)

    let first = try await engine.receive(from: orders, maximumCount: 4)
    #expect(observed.count("messages_received") == 4)
    #expect(observed.count("messages_redelivered") == 0)
    try await engine.acknowledge([first[0].token])
    try await engine.release([first[1].token])
    try await engine.reject([first[2].token], reason: "no")
    #expect(observed.count("messages_acknowledged") == 1)
    #expect(observed.count("messages_released") == 1)
    #expect(observed.count("messages_dead_lettered") == 1)

    observed.plain.time.advance(by: .seconds(31))
    #expect(try await engine.receive(from: orders, maximumCount: 9).count == 3)
    #expect(observed.count("leases_expired") == 1)
    #expect(observed.count("messages_received") == 7)
    #expect(observed.count("messages_redelivered") == 2)

    try await engine.redrive(of: orders)
    #expect(observed.count("messages_redriven") == 1)
    try await engine.purge(orders)
    #expect(observed.count("messages_purged") == 4)
  }

  @Test func `the last attempt makes a dead letter, by release or by the end of a lease`()
    async throws
  {
    try await engine.addConsumer(.default, of: orders, maximumAttempts: 1)
    try await observed.publish("a", "b", to: orders)
    let deliveries = try await engine.receive(from: orders, maximumCount: 2)
    try await engine.release([deliveries[0].token])
    #expect(observed.count("messages_dead_lettered") == 1)
    observed.plain.time.advance(by: .seconds(31))
    #expect(try await engine.receive(from: orders).isEmpty)
    #expect(observed.count("messages_dead_lettered") == 2)
    #expect(observed.count("leases_expired") == 1)
  }

  @Test func `the end of a release's delay does not count as an expired lease`() async throws {
    try await observed.publish("a", "b", "c", "d", "e", to: orders)
    let deliveries = try await engine.receive(from: orders, maximumCount: 5)
    try await engine.release(deliveries.dropLast().map(\.token), after: .seconds(10))
    observed.plain.time.advance(by: .seconds(11))
    #expect(try await engine.receive(from: orders, maximumCount: 9).count == 4)
    #expect(observed.count("messages_released") == 4)
    #expect(observed.count("leases_expired") == 0)
    observed.plain.time.advance(by: .seconds(31))
    #expect(try await engine.receive(from: orders, maximumCount: 9).count == 5)
    #expect(observed.count("leases_expired") == 5)
  }

  @Test func `a message published twice with one deduplication id counts once`()
    async throws
  {
    var message = Message(channel: orders, payload: [1])
    message.deduplicationID = "once"
    try await engine.publish([message, message])
    try await engine.publish(message)
    #expect(observed.count("messages_published") == 1)
  }

  @Test func `messages removed by time to live and retention are counted`() async throws {
    var message = Message(channel: orders, payload: [1])
    message.timeToLive = .seconds(1)
    try await engine.publish(message)
    observed.plain.time.advance(by: .seconds(2))
    #expect(try await engine.receive(from: orders).isEmpty)
    #expect(observed.count("messages_expired") == 1)

    var retention = Retention()
    retention.maximumMessageCount = 1
    retention.discardsUnacknowledged = true
    try await engine.setRetention(retention, of: orders)
    try await observed.publish("a", "b", "c", to: orders)
    #expect(try await engine.maintain() == 2)
    #expect(observed.count("messages_removed_by_retention") == 2)
    #expect(observed.count("messages_purged") == 0)
  }

  @Test func `tokens that settle nothing are not counted`() async throws {
    try await observed.publish("a", to: orders)
    let token = try await engine.receive(from: orders)[0].token
    try await engine.acknowledge([token])
    #expect(await code { try await engine.acknowledge([token]) } == .unknownLease)
    #expect(await code { try await engine.release([token]) } == .unknownLease)
    #expect(await code { try await engine.reject([token], reason: "no") } == .unknownLease)
    #expect(observed.count("messages_acknowledged") == 1)
    #expect(observed.count("messages_released") == 0)
    #expect(observed.count("messages_dead_lettered") == 0)
  }

  @Test func `committed messages are counted, and rolled-back ones never`() async throws {
    struct Fault: Error {}
    let (engine, message) = (engine, Message(channel: orders, payload: [1]))
    await #expect(throws: Fault.self) {
      try await engine.write { db in
        try engine.publish(message, in: db)
        throw Fault()
      }
    }
    #expect(observed.count("messages_published") == 0)
    try await engine.write { db in
      try engine.publish([message, message], in: db)
      #expect(observed.count("messages_published") == 0)
    }
    #expect(observed.count("messages_published") == 2)
  }

  @Test func `settling in the caller's transaction counts with its commit, and never before`()
    async throws
  {
    struct Fault: Error {}
    let (engine, orders) = (engine, orders)
    try await engine.addConsumer(.default, of: orders, maximumAttempts: 1)
    try await engine.publish((0..<4).map { Message(channel: orders, "\($0)") })
    let names = ["received", "acknowledged", "released", "dead_lettered"]
    for isKept in [false, true] {
      let writing = await engineError {
        do {
          try await engine.write { db in
            let held = try engine.receive(from: orders, maximumCount: 4, in: db)
            try engine.acknowledge(held[0].token, in: db)
            try engine.release(held[1].token, in: db)
            try engine.reject(held[2].token, reason: "no", in: db)
            for name in names { #expect(observed.count("messages_\(name)") == 0) }
            if !isKept { throw Fault() }
          }
        } catch is Fault {}
      }
      #expect(writing == nil)
      let counts = names.map { observed.count("messages_\($0)") }
      #expect(counts == (isKept ? [4, 1, 1, 2] : [0, 0, 0, 0]))
    }
  }

  @Test func `a failed operation never counts, and a repeated one counts once`()
    async throws
  {
    let (engine, message) = (engine, Message(channel: orders, payload: [1]))
    let gate = WriterGate(engine.pool)
    let publications = (0..<3).map { _ in Task { try await engine.publish(message) } }
    let losing = Task {
      await code {
        try await engine.commits.run(during: "losing") { db in
          try db.execute(sql: "ROLLBACK")
          throw DatabaseError(resultCode: .SQLITE_FULL)
        }
      }
    }
    try await eventually { engine.waitingCount == 4 }
    gate.open()
    for publication in publications { _ = try await publication.value }
    #expect(await losing.value == .diskFull)
    #expect(observed.count("messages_published") == 3)
  }

  @Test func `commit metrics report the operations and the times of a commit`() async throws {
    let (engine, message) = (engine, Message(channel: orders, payload: [1]))
    let gate = WriterGate(engine.pool)
    let publications = (0..<3).map { _ in Task { try await engine.publish(message) } }
    try await eventually { engine.waitingCount == 3 }
    gate.open()
    for publication in publications { _ = try await publication.value }
    #expect(try observed.metrics.expectRecorder("datavault_commit_operations").values == [3])
    for name in ["work", "sync"] {
      let timer = try observed.metrics.expectTimer("datavault_commit_\(name)_seconds")
      #expect(timer.values.count == 1)
      #expect(timer.values.allSatisfy { $0 > 0 })
    }
  }
}
