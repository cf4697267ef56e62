import Foundation
import FileLayer
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import Testing

@Suite struct NodeTests {
  @Test func `what one node publishes, all nodes have at the same place`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1)
    let b = try await TestNode(shard, member: 2)
    let first = try await a.engine.publish(Message("one"))
    let second = try await b.engine.publish([Message("two"), Message("three")])
    #expect(second.count == 2 && second[0] > first)
    try await eventually("both have all") {
      let texts = try await [a.texts(of: .orders), b.texts(of: .orders)]
      return texts.allSatisfy { $0 == ["one", "two", "three"] }
    }
    try await expectEqual(a, b)
    await a.stop()
    await b.stop()
  }

  @Test func `publishers at the same time share a record, each with its own places`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let places = try await withThrowingTaskGroup(of: (Int, Timetoken).self) { group in
      for index in 0..<50 {
        group.addTask {
          let place = try await node.engine.publish(Message("\(index)"))
          return (index, place)
        }
      }
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    #expect(Set(places.values).count == 50)
    let texts = try await node.texts(of: .orders)
    #expect(texts == places.sorted { $0.value < $1.value }.map { "\($0.key)" })
    #expect(shard.log.count < 50)
    await node.stop()
  }

  @Test func `publishers that share a record get their places whenever they ask`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let record = try await node.engine.write { db in
      try node.node.post([Message("one"), Message("two")], for: 2, in: db)
    }
    try await eventually("it is applied") { try await node.texts(of: .orders) == ["one", "two"] }
    let first = try await node.node.places(of: record)
    #expect(first.count == 2)
    #expect(try await node.node.places(of: record) == first)
    await node.stop()
  }

  @Test func `what no caller waits for goes before what is published later`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1) { $0.gatheringTime = .seconds(3600) }
    for index in 1...3 { try await node.engine.post(Message("\(index)")) }
    try await node.engine.publish(Message("4"))
    #expect(try await node.texts(of: .orders) == ["1", "2", "3", "4"])
    await node.stop()
  }

  @Test func `a repeated publication stores nothing and has the place of the first`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1)
    let b = try await TestNode(shard, member: 2)
    let first = try await a.engine.publish(Message("once", id: "x"))
    #expect(try await b.engine.publish(Message("once", id: "x")) == first)
    #expect(try await b.texts(of: .orders) == ["once"])
    await a.stop()
    await b.stop()
  }

  @Test func `a timeout advises to publish again only who has published`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1) { $0.patience = .seconds(3) }
    try await eventually("it is published") {
      (try? await node.engine.publish(Message("one", id: "one"))) != nil
    }
    shard.log.setDown(true)
    let publishing = await #expect(throws: EngineError.self) {
      try await node.engine.publish(Message("two"))
    }
    #expect(publishing?.code == .outcomeUnknown)
    #expect(publishing?.hint?.contains("publish again") == true)
    let changing = await #expect(throws: EngineError.self) {
      try await node.engine.addConsumer(Consumer("w"), of: .orders)
    }
    #expect(changing?.code == .outcomeUnknown)
    #expect(changing?.hint?.contains("publish") == false)
    shard.log.setDown(false)
    await node.stop()
  }

  @Test func `a message is leased once, and settled for all`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1, TestShard.lengthenLeases)
    try await a.becomeOwner()
    try await a.engine.publish([Message("one"), Message("two")])
    let deliveries = try await a.engine.receive(
      from: .orders, maximumCount: 5, lease: .seconds(600), waitingUpTo: .seconds(60))
    #expect(deliveries.map(\.text) == ["one", "two"])
    #expect(deliveries.map(\.attempt) == [1, 1])
    try await a.engine.acknowledge(deliveries[0].token)
    try await a.engine.acknowledge(deliveries[0].token)
    // The other lease ends without an answer.
    a.time.advance(by: .seconds(600))
    let again = try await a.engine.receive(
      from: .orders, maximumCount: 5, lease: .seconds(600), waitingUpTo: .seconds(60))
    #expect(again.map(\.text) == ["two"])
    #expect(again.map(\.attempt) == [2])
    try await a.engine.reject([again[0].token], reason: "no")
    #expect(try await a.engine.deadLetters(of: .orders).map(\.attemptCount) == [2])
    #expect(try await a.engine.redrive(of: .orders) == 1)
    let last = try await a.engine.receive(
      from: .orders, maximumCount: 5, lease: .seconds(600), waitingUpTo: .seconds(60))
    #expect(last.map(\.text) == ["two"])
    try await a.engine.acknowledge(last[0].token)
    #expect(try await a.texts(of: .orders) == [])
    await #expect(throws: EngineError.self) { try await a.engine.acknowledge(again[0].token) }
    await a.stop()
  }

  @Test func `a node that reads a log in which nothing happens stays current`() async throws {
    // A node knows no more of the log than what it was when the last read began.
    let usual = NodeConfiguration()
    #expect(usual.readWait * 2 < usual.longestBlindness && usual.longestBlindness == .seconds(1))
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1) {
      $0.readWait = usual.readWait
      $0.longestBlindness = .seconds(4)
      $0.ownership.heartbeatInterval = .seconds(60)
    }
    try await eventually("it has read") { node.node.isCurrent }
    node.time.advance(by: .seconds(6))
    try await eventually("it is still current") { node.node.isCurrent }
    node.log.setCutOff(true)
    node.time.advance(by: .seconds(6))
    try await eventually("it is cut off") { !node.node.isCurrent }
    await node.stop()
  }

  @Test func `without a replica, a replicated home is only read`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    let folder = await node.stop()
    let other = try MessagingEngine(
      pool: .init(path: folder.path("messaging.db")), time: try SystemTimeSource(), isSecured: true)
    #expect(try await other.statistics().channels.map(\.messageCount) == [1])
    await #expect(throws: EngineError.self) { try await other.publish(Message("two")) }
    await #expect(throws: EngineError.self) { try await other.receive(from: .orders) }
  }

  @Test func `a worker at another node leases from the owner, and settles there`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1, TestShard.lengthenLeases)
    try await a.becomeOwner()
    let b = try await TestNode(shard, member: 2, TestShard.lengthenLeases)
    try await b.engine.publish([
      Message("one"), Message("two", key: "k"), Message("three", key: "k"),
    ])
    let first = try await b.engine.receive(
      from: .orders, maximumCount: 5, lease: .seconds(30), waitingUpTo: .seconds(60))
    #expect(first.map(\.text) == ["one", "two"])
    try await b.engine.acknowledge(first.map(\.token))
    try await b.engine.acknowledge(first.map(\.token))
    let second = try await b.engine.receive(
      from: .orders, maximumCount: 5, lease: .seconds(30), waitingUpTo: .seconds(60))
    #expect(second.map(\.text) == ["three"])
    try await b.engine.acknowledge(second.map(\.token))
    try await expectEqual(a, b)
    #expect(try await b.texts(of: .orders) == [])
    await a.stop()
    await b.stop()
  }

  @Test func `what brokers forget is undone, and comes back from the outbox`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1) { $0.syncInterval = .seconds(60) }
    let b = try await TestNode(shard, member: 2) { $0.syncInterval = .seconds(60) }
    for index in 0..<20 {
      try await (index % 2 == 0 ? a : b).engine.publish(Message("\(index)"))
    }
    try await a.engine.setRetention(Retention(), of: .orders)
    shard.log.forget(12)
    for index in 20..<30 {
      try await (index % 2 == 0 ? a : b).engine.publish(Message("\(index)"))
    }
    try await expectEqual(a, b)
    #expect(Set(try await a.texts(of: .orders)) == Set((0..<30).map { "\($0)" }))
    #expect(try await a.texts(of: .orders).count == 30)
    await a.stop()
    await b.stop()
  }

  @Test func `a node that starts again brings what it had promised`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1)
    try await a.engine.publish(Message("one"))
    a.log.setCutOff(true)
    try await a.engine.post(Message("two"))
    #expect(try await a.texts(of: .orders) == ["one"])
    let folder = await a.stop()
    let again = try await TestNode(shard, member: 1, folder: folder)
    try await again.engine.publish(Message("three"))
    #expect(try await again.texts(of: .orders) == ["one", "two", "three"])
    await again.stop()
  }

  @Test func `what is in the log is applied beyond the limit of a home`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    let size = try await node.engine.databaseSize().byteCount
    try await node.engine.setMaximumDatabaseByteCount(size + 4096)
    try await node.engine.publish(Message(String(repeating: "x", count: 65_536)))
    let error = await #expect(throws: EngineError.self) {
      try await node.engine.publish(Message("three"))
    }
    #expect(error?.code == .queueFull)
    try await node.engine.setMaximumDatabaseByteCount(nil)
    try await node.engine.publish(Message("four"))
    #expect(try await node.texts(of: .orders).count == 3)
    await node.stop()
  }

  @Test func `a node is freed with its keys when its engine has stopped`() async throws {
    final class Weak: Sendable {
      private let node: Mutex<WeakNode>
      struct WeakNode { weak var node: ReplicaNode? }
      init(_ node: ReplicaNode) { self.node = Mutex(WeakNode(node: node)) }
      var isFreed: Bool { node.withLock { $0.node == nil } }
    }
    let shard = try TestShard()
    func run() async throws -> Weak {
      let node = try await TestNode(shard, member: 1)
      try await node.engine.publish(Message("one"))
      await node.stop()
      return Weak(node.node)
    }
    let node = try await run()
    try await eventually("it is freed") { node.isFreed }
  }

  @Test func `each place is a multiple of 100`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let places = try await node.engine.publish([Message("one"), Message("two")])
    #expect(places.map { $0.rawValue % 100 } == [0, 0])
    await node.stop()
  }

  @Test func `a large commit travels in parts`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1)
    let b = try await TestNode(shard, member: 2)
    let payload = String(repeating: "x", count: 400_000)
    try await a.engine.publish((0..<4).map { Message("\($0)" + payload) })
    try await expectEqual(a, b)
    #expect(try await b.texts(of: .orders).map(\.first) == ["0", "1", "2", "3"])
    let names = shard.log.records.map(\.name)
    #expect(Set(names).count == names.count, "nothing waits for a part that is there")
    await a.stop()
    await b.stop()
  }
}

extension Delivery {
  var text: String { String(decoding: payload, as: UTF8.self) }
}

/// Waits until nodes have applied the same records, and compares their rows.
func expectEqual(_ nodes: TestNode..., sourceLocation: SourceLocation = #_sourceLocation)
  async throws
{
  var rows: [[String]] = []
  try await eventually("nodes at one place") {
    let before = nodes.map(\.node.position)
    rows = []
    for node in nodes { rows.append(try await node.rows()) }
    return Set(nodes.map(\.node.position) + before).count == 1
  }
  for other in rows.dropFirst() { #expect(other == rows[0], sourceLocation: sourceLocation) }
}
