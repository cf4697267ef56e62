import FileLayer
import FileRecording
import GRDB
import TestSupport
@testable import MessagingQueue
import QueueFixture
import SystemPackage
import Testing

@Suite struct RetentionTests {
  let channel = Channel.orders
  let plain: PlainEngine
  let engine: MessagingEngine

  init() async throws {
    plain = try PlainEngine()
    engine = try plain.engine()
  }

  private func publish(_ texts: String...) async throws {
    try await engine.publish(texts, to: channel)
  }

  private var log: [String] {
    get async throws {
      try await engine.history(of: channel, maximumCount: 100_000).map(\.text)
    }
  }

  private func retain(_ change: (inout Retention) -> Void) async throws {
    var retention = Retention()
    change(&retention)
    try await engine.setRetention(retention, of: channel)
    #expect(try await engine.retention(of: channel) == retention)
  }

  /// Checks that the sums in the channel's row match its messages.
  private func checkSums() throws {
    let sums = try plain.pool.read { db in
      try Row.fetchOne(
        db,
        sql: """
          SELECT message_count = (SELECT count(*) FROM message),
            byte_count = (SELECT total(length(payload) + ifnull(length(headers), 0)) FROM message)
          FROM channel
          """)
    }
    #expect(sums?[0] == true && sums?[1] == true)
  }

  @Test func `a message leaves the log after its acknowledgement, unless the channel keeps it`()
    async throws
  {
    try await publish("a", "b")
    try await engine.acknowledge([try await engine.receive(from: channel)[0].token])
    #expect(try await log == ["b"])
    try await retain { $0.keepsAcknowledged = true }
    try await engine.acknowledge([try await engine.receive(from: channel)[0].token])
    #expect(try await log == ["b"])
    #expect(try await engine.receive(from: channel).isEmpty)
    try checkSums()
  }

  @Test func `the limits of age, count and bytes each remove the oldest messages`() async throws {
    try await publish("a", "bb", "ccc")
    plain.time.advance(by: .seconds(100))
    try await publish("dddd", "eeeee", "ffffff")
    try await retain { $0.maximumAge = .seconds(60) }
    #expect(try await engine.maintain() == 3)
    #expect(try await log == ["dddd", "eeeee", "ffffff"])
    try await retain { $0.maximumByteCount = 11 }
    #expect(try await engine.maintain() == 1)
    #expect(try await log == ["eeeee", "ffffff"])
    try await retain { $0.maximumMessageCount = 1 }
    #expect(try await engine.maintain() == 1)
    #expect(try await log == ["ffffff"])
    #expect(try await engine.maintain() == 0)
    try checkSums()
  }

  @Test func `limits keep the messages that a consumer needs`() async throws {
    try await publish("leased", "acknowledged", "ready", "ahead")
    let deliveries = try await engine.receive(from: channel, maximumCount: 3)
    try await engine.acknowledge([deliveries[1].token])
    try await engine.release([deliveries[2].token])
    try await retain {
      $0.keepsAcknowledged = true
      $0.maximumMessageCount = 0
    }
    #expect(try await engine.maintain() == 0)
    #expect(try await log == ["leased", "ready", "ahead"])
    try await retain {
      $0.maximumMessageCount = 1
      $0.discardsUnacknowledged = true
    }
    #expect(try await engine.maintain() == 2)
    #expect(try await log == ["ahead"])
    #expect(await code { try await engine.acknowledge([deliveries[0].token]) } == .unknownLease)
    try checkSums()
  }

  @Test func `a sweep passes any number of messages that consumers need`() async throws {
    let late = try Consumer("late")
    try await engine.addConsumer(late, of: channel)
    try await retain {
      $0.keepsAcknowledged = true
      $0.maximumMessageCount = 100
    }
    for number in 0..<1300 { try plain.database.publish(["\(number)"], to: channel) }
    let deliveries = try await engine.receive(from: channel, for: late, maximumCount: 1300)
    // All but the first 700.
    try await engine.acknowledge(deliveries.dropFirst(700).map(\.token))
    #expect(try await engine.maintain() == 600)
    #expect(try await log.count == 700)
    try checkSums()
  }

  @Test func `a sweep does not read messages after a consumer's position`() async throws {
    try await publish("a", "b", "c")
    try await engine.addConsumer(.default, of: channel)
    try await retain { $0.maximumMessageCount = 0 }
    let step = try await plain.database.engine.commits.run(during: "retention") { db in
      try plain.database.engine.tables.sweep(channel, after: nil, count: 1, in: db)
    }
    #expect(step.last == nil)
    #expect(try await log.count == 3)
  }

  @Test func `one engine does the maintenance, and another after it has stopped`() async throws {
    let path = FilePath(plain.pool.path + "-maintenance")
    try await retain { $0.maximumMessageCount = 1 }
    for round in 1...2 {
      let engine = try plain.neighbour { $0.maintenanceInterval = .milliseconds(5) }
      engine.beginMaintenance { try? LinuxFileSystem().lock(path, wait: false) }
      try await publish("\(round)", "\(round) again")
      try await eventually { try await log.count <= 1 }
      #expect(try LinuxFileSystem().lock(path, wait: false) == nil)
      try await engine.stop()
      try await eventually { try LinuxFileSystem().lock(path, wait: false) != nil }
    }
  }

  @Test func `a purge takes leased messages and unblocks their keys`()
    async throws
  {
    var first = Message(channel: channel, payload: [1])
    first.orderingKey = "key"
    var second = first
    second.payload = [2]
    try await engine.publish([first])
    let timetoken = try await engine.publish(second)
    let held = try await engine.receive(from: channel, maximumCount: 9)
    #expect(held.map(\.payload) == [[1]])
    #expect(try await engine.purge(channel, before: timetoken) == 1)
    #expect(try await engine.receive(from: channel).map(\.payload) == [[2]])
    #expect(try await engine.purge(channel) == 1)
    #expect(try await log.isEmpty)
    try checkSums()
  }

  @Test func `the file gives its space back while other callers write`() async throws {
    let payload = [UInt8](repeating: 7, count: 3000)
    for _ in 0..<6 {
      try await engine.publish(
        (0..<500).map { _ in Message(channel: channel, payload: payload) })
    }
    let publisher = Task {
      for _ in 0..<50 { try await engine.publish(Message(channel: Channel("other"), payload: [1])) }
    }
    #expect(try await engine.purge(channel) == 3000)
    let byteCount = try await engine.compact()
    try await publisher.value
    #expect(byteCount > 3000 * 3000)
    #expect(try plain.number("PRAGMA freelist_count").map { $0 < 20 } == true)
    #expect(try plain.number("PRAGMA page_count").map { $0 < 100 } == true)
    #expect(try plain.text("PRAGMA integrity_check") == "ok")
  }
}
