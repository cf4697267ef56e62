import FileLayer
import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@Suite struct NodeFaultTests {
  @Test func `a settlement whose transaction fails is written again`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1, TestShard.lengthenLeases)
    try await node.becomeOwner()
    try await node.engine.publish((0..<4).map { Message("\($0)") })
    let deliveries = try await node.engine.receive(
      from: .orders, maximumCount: 4, lease: .seconds(600), waitingUpTo: .seconds(60))
    #expect(deliveries.count == 4)
    let fault = try CommitFault(of: node.pool) { $0.outbox >= 4 }
    let error = await #expect(throws: EngineError.self) {
      try await node.engine.acknowledge(deliveries.map(\.token))
    }
    #expect(error?.code == .diskFull)
    fault.end()
    try await node.engine.acknowledge(deliveries.map(\.token))
    #expect(try await node.texts(of: .orders) == [])
    await node.stop()
  }

  @Test func `a node goes on after the log could not be applied`() async throws {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1)
    let b = try await TestNode(shard, member: 2)
    try await a.engine.publish(Message("one"))
    for isUnknown in [false, true] {
      // Before the fault: a publication can share a transaction with the log.
      try await b.engine.post(Message("two"))
      let fault = try CommitFault(of: b.pool, isUnknown: isUnknown) { $0.tail > 0 }
      try await a.engine.publish(Message("three"))
      try await eventually("a failed transaction") { fault.count > 0 }
      fault.end()
    }
    var texts: [String] = []
    // What was posted can still be in the outbox when both are at one place.
    try await eventually("all is applied: \(texts)") {
      texts = try await b.texts(of: .orders).sorted()
      return texts.count >= 5
    }
    #expect(texts == ["one", "three", "three", "two", "two"])
    try await expectEqual(a, b)
    #expect(try await b.engine.publish(Message("four")) > Timetoken(unchecked: 0))
    await a.stop()
    await b.stop()
  }

  @Test func `a node that can neither apply nor write appends nothing twice`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    try await eventually("it writes heartbeats") { node.node.isOwner }
    let applying = try CommitFault(of: node.pool) { $0.tail > 0 }
    // It can share a transaction with the log.
    try await eventually("it is in the outbox") {
      (try? await node.engine.post(Message("two"))) != nil
    }
    let writing = try CommitFault(of: node.pool) { $0.outbox > 0 }
    // A heartbeat that waits until it is applied is followed by none.
    try await eventually("no write succeeds") {
      await #expect(throws: EngineError.self) { try await node.engine.post(Message("three")) }
      return writing.count > 0
    }
    // The node applies the log again each second: longer than the log can lack a record that is on its way.
    let count = applying.count
    try await eventually("it tries again") { applying.count >= count + 3 }
    let names = shard.log.records.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(applying.count > 0 && writing.count > 0)
    applying.end()
    writing.end()
    try await eventually("it is applied") {
      try await node.texts(of: .orders) == ["one", "two"]
    }
    await node.stop()
  }

  @Test func `of two processes with one author, one stops`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    let own = try #require(shard.log.records.last { shard.body(of: $0)?.isCommit == true })
    try shard.append(
      (
        .commit([PublishedMessage(channel: "orders", content: [])]),
        RecordNumber(own.name.author, own.name.number + 9)
      ))
    let error = try #require(await node.end() as? ReplicationError)
    #expect(error.code == .duplicated)
    await node.stop()
  }

  @Test func `a record under a process's name that no member has sealed does not stop it`()
    async throws
  {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    let own = try #require(shard.log.records.last { shard.body(of: $0)?.isCommit == true }).name
    try shard.log.append([
      try SealedRecord(RecordNumber(own.author, own.number + 9), key: 1, sealed: [1, 2, 3])
    ])
    try await node.engine.publish(Message("two"))
    #expect(try await node.texts(of: .orders) == ["one", "two"])
    await node.stop()
  }

  @Test func `a record that stops a node is not counted as applied`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    let author = AuthorID(7)
    let commit = LogRecord.Body.commit([
      PublishedMessage(channel: "orders", content: Message("two").content(at: 0))
    ])
    let unreadable = LogRecord.Body.commit([PublishedMessage(channel: "orders", content: [99])])
    try shard.append(
      (commit, RecordNumber(author, 1)), (commit, RecordNumber(author, 2)),
      (unreadable, RecordNumber(author, 3)))
    #expect((await node.end() as? ReplicationError)?.code == .alarm)
    let number = try await node.pool.read { db in
      try Int.fetchOne(
        db, sql: "SELECT number FROM replication_author WHERE author = ?",
        arguments: [Data(author.bytes)])
    }
    #expect(number == 2)
    #expect(try await node.texts(of: .orders) == ["one", "two", "two"])
    await node.stop()
  }

  @Test func `a publication that no record can carry is refused`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let error = await #expect(throws: EngineError.self) {
      try await node.engine.post(Array(repeating: Message(""), count: 100_001))
    }
    #expect(error?.code == .invalidArgument)
    let large = Message(String(repeating: "x", count: 900_000))
    let other = await #expect(throws: EngineError.self) {
      try await node.engine.post(Array(repeating: large, count: 40))
    }
    #expect(other?.code == .invalidArgument)
    try await node.engine.publish(Message("one"))
    #expect(try await node.texts(of: .orders) == ["one"])
    await node.stop()
  }

  @Test func `publishers at the same time do not make a record that no one reads`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let batch = (0..<9_000).map { _ in Message("") }
    try await withThrowingTaskGroup { group in
      for _ in 0..<14 { group.addTask { try await node.engine.post(batch) } }
      try await group.waitForAll()
    }
    let large = (0..<9).map { _ in Message(String(repeating: "x", count: 1_000_000)) }
    try await withThrowingTaskGroup { group in
      for _ in 0..<5 { group.addTask { try await node.engine.post(large) } }
      try await group.waitForAll()
    }
    try await eventually("all there") {
      try await node.engine.statistics().messageCount == 14 * 9_000 + 45
    }
    await node.stop()
  }

  @Test func `settling many leases waits once while the log is down`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1) {
      TestShard.lengthenLeases(&$0)
      $0.patience = .seconds(3)
    }
    try await node.becomeOwner()
    let messages = (0..<100).map { Message("\($0)", id: "\($0)") }
    try await eventually("they are published") {
      (try? await node.engine.publish(messages)) != nil
    }
    let deliveries = try await node.engine.receive(
      from: .orders, maximumCount: 100, lease: .seconds(600), waitingUpTo: .seconds(60))
    #expect(deliveries.count == 100)
    shard.log.setDown(true)
    let hasReturned = Mutex(false)
    let settling = Task {
      defer { hasReturned.withLock { $0 = true } }
      try await node.engine.acknowledge(deliveries.map(\.token))
    }
    // A wait for each lease would take five minutes.
    try await eventually("it returns") { hasReturned.withLock { $0 } }
    let error = await #expect(throws: EngineError.self) { try await settling.value }
    #expect(error?.code == .outcomeUnknown)
    shard.log.setDown(false)
    try await eventually("acknowledged") { try await node.texts(of: .orders) == [] }
    await node.stop()
  }

  @Test func `a worker is not told that a settlement is lost which counts`() async throws {
    let shard = try TestShard()
    var a = try await TestNode(shard, member: 1, TestShard.lengthenLeases)
    try await a.becomeOwner()
    let b = try await TestNode(shard, member: 2) {
      TestShard.lengthenLeases(&$0)
      $0.requestPatience = .seconds(1)
    }
    try await b.engine.publish(Message("one"))
    let delivery = try #require(
      try await b.engine.receive(
        from: .orders, lease: .seconds(20), waitingUpTo: .seconds(60)
      ).first)
    // The owner gets the settlement, and its reply and the log do not reach the worker's node.
    b.log.setCutOff(true)
    let owner = a.member
    shard.exchange.setLoss { _, bytes in Array(bytes.dropFirst(22).prefix(16)) == owner.bytes }
    let unanswered = await #expect(throws: EngineError.self) {
      try await b.engine.acknowledge(delivery.token)
    }
    #expect(unanswered?.code == .outcomeUnknown)
    try await eventually("it counts") { try await a.texts(of: .orders) == [] }
    let folder = await a.stop()
    a = try await TestNode(shard, member: 1, folder: folder)
    shard.exchange.setLoss(nil)
    let unknown = await #expect(throws: EngineError.self) {
      try await b.engine.acknowledge(delivery.token)
    }
    #expect(unknown?.code == .outcomeUnknown)
    b.log.setCutOff(false)
    try await eventually("it is done") {
      (try? await b.engine.acknowledge(delivery.token)) != nil
    }
    await a.stop()
    await b.stop()
  }

  @Test func `a receive does not change the limit of a consumer that it does not know`()
    async throws
  {
    let shard = try TestShard()
    let a = try await TestNode(shard, member: 1)
    let b = try await TestNode(shard, member: 2)
    try await a.engine.publish(Message("one"))
    try await expectEqual(a, b)
    b.log.setCutOff(true)
    try await a.engine.addConsumer(.default, of: .orders, maximumAttempts: 3)
    let written = try await b.outbox()
    async let received = b.engine.receive(from: .orders, lease: .seconds(4))
    try await eventually("it adds the consumer") {
      try await !b.outbox().isSubset(of: written)
    }
    b.log.setCutOff(false)
    _ = try await received
    try await expectEqual(a, b)
    let consumers = try await a.engine.statistics(of: .orders)?.consumers
    #expect(consumers?.map(\.maximumAttempts) == [3])
    await a.stop()
    await b.stop()
  }

  @Test func `the delay of a released message outlives the owner`() async throws {
    let shard = try TestShard()
    func change(_ configuration: inout NodeConfiguration) {
      TestShard.lengthenLeases(&configuration)
      configuration.ownership.heartbeatInterval = .milliseconds(250)
      configuration.ownership.silence = .seconds(5)
    }
    let a = try await TestNode(shard, member: 1, change)
    try await a.becomeOwner()
    let b = try await TestNode(shard, member: 2, change)
    try await a.engine.publish([Message("late"), Message("soon")])
    let deliveries = try await b.engine.receive(
      from: .orders, maximumCount: 2, lease: .seconds(30), waitingUpTo: .seconds(60))
    #expect(deliveries.map(\.text) == ["late", "soon"])
    try await b.engine.release(deliveries[0].token, after: .seconds(3600))
    try await b.engine.release(deliveries[1].token, after: .milliseconds(1))
    try await expectEqual(a, b)
    await a.stop()
    try await b.becomeOwner()
    let again = try await b.engine.receive(
      from: .orders, maximumCount: 2, lease: .seconds(30), waitingUpTo: .seconds(60))
    #expect(again.map(\.text) == ["soon"])
    #expect(
      try await b.engine.statistics(of: .orders)?.consumers.map(\.delayedCount) == [1])
    await b.stop()
  }

  @Test func `nothing stays of a message that all consumers have acknowledged`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish([Message("one"), Message("two")])
    let delivery = try #require(
      try await node.engine.receive(
        from: .orders, lease: .seconds(4), waitingUpTo: .seconds(60)
      ).first)
    try await node.engine.acknowledge(delivery.token)
    let count = try await node.pool.read {
      try Int.fetchOne($0, sql: "SELECT count(*) FROM replication_origin")
    }
    #expect(count == 1)
    await node.stop()
  }

  @Test func `a node whose transactions fail reports the keys of its tail`() async throws {
    let shard = try TestShard(keyCount: 2)
    let node = try await TestNode(shard, member: 1) {
      $0.syncInterval = .seconds(60)
      $0.reportInterval = .milliseconds(400)
    }
    try await node.engine.publish(Message("under the older key"))
    try await eventually("a report") { !shard.reportedKeys.isEmpty }
    try shard.append((.keySwitch(2), RecordNumber(AuthorID(8), 1)))
    try await eventually("the newer key is used") {
      shard.log.records.last { shard.body(of: $0)?.isReport == true }?.key == 2
    }
    let count = shard.reportedKeys.count
    try await eventually("another report") { shard.reportedKeys.count > count }
    let last = shard.log.firstSequence + UInt64(shard.log.count) - 1
    try await eventually("it is applied") { node.node.position >= last }
    let fault = try CommitFault(of: node.pool) { $0.tail > 0 }
    // It can share the transaction of a record that is applied.
    try await eventually("a publication") {
      (try? await node.engine.post(Message("not applied"))) != nil
    }
    try await eventually("a failed transaction, and a report") {
      fault.count > 0 && shard.reportedKeys.count > count + 1
    }
    fault.end()
    #expect(Set(shard.reportedKeys) == [1])
    await node.stop()
  }
}

typealias LogRecord = Replication.Record

extension TestShard {
  /// Appends what another author writes.
  func append(_ records: (LogRecord.Body, RecordNumber)...) throws {
    let seal = RingSeal(try keyRing(), random: .unshared())
    try log.append(
      records.map { body, name in
        let part = RecordPart(
          isContinued: false, follows: nil, share: LogRecord(time: 0, body).encoded)
        return try seal.seal(part.bytes, as: name, under: 1)
      })
  }

  /// The oldest keys that the reports in the log name.
  fileprivate var reportedKeys: [UInt32] {
    log.records.compactMap { record in
      if case .report(_, _, _, _, let oldestKey) = body(of: record) { oldestKey } else { nil }
    }
  }
}

extension LogRecord.Body {
  fileprivate var isCommit: Bool { if case .commit = self { true } else { false } }
  fileprivate var isReport: Bool { if case .report = self { true } else { false } }
}
