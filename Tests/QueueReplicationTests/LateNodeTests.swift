import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import Testing

/// Leases at a node that the log or the owner does not reach.
@Suite struct LateNodeTests {
  /// The owner of the leases, another node, and a message that only the owner has.
  private struct Nodes {
    let shard: TestShard
    let owner: TestNode
    let late: TestNode

    init(requestPatience: Duration = .seconds(20)) async throws {
      shard = try TestShard()
      func change(_ configuration: inout NodeConfiguration) {
        TestShard.lengthenLeases(&configuration)
        configuration.requestPatience = requestPatience
      }
      let owner = try await TestNode(shard, member: 1, change)
      try await owner.becomeOwner()
      self.owner = owner
      late = try await TestNode(shard, member: 2, change)
      try await late.engine.addConsumer(.default, of: .orders)
      try await expectEqual(owner, late)
    }

    func publishUnread() async throws {
      late.log.setCutOff(true)
      try await owner.engine.publish(Message("one"))
    }

    /// Waits until the owner has leased a message to the late node.
    func waitForLease() async throws {
      try await eventually("a lease") { shard.exchange.answeredCount > 0 }
    }

    func stop() async {
      await late.stop()
      await owner.stop()
    }
  }

  @Test func `an extension that the owner does not answer loses no lease`() async throws {
    let nodes = try await Nodes(requestPatience: .seconds(2))
    try await nodes.owner.engine.publish(Message("one"))
    let delivery = try #require(
      try await nodes.late.engine.receive(
        from: .orders, lease: .seconds(20), waitingUpTo: .seconds(60)
      ).first)
    nodes.shard.exchange.setLoss { _, _ in true }
    let error = await #expect(throws: EngineError.self) {
      try await nodes.late.engine.extend(delivery.token, by: .seconds(20))
    }
    #expect(error?.code == .busy && error?.hint != nil)
    nodes.shard.exchange.setLoss(nil)
    try await nodes.late.engine.extend(delivery.token, by: .seconds(20))
    try await nodes.late.engine.acknowledge(delivery.token)
    await nodes.stop()
  }

  @Test func `a node that is behind gives leases back before they end`() async throws {
    let nodes = try await Nodes()
    try await nodes.publishUnread()
    let receiver = Task {
      try await nodes.late.engine.receive(from: .orders, lease: .seconds(600))
    }
    try await nodes.waitForLease()
    nodes.late.time.advance(by: .seconds(300))
    #expect(try await receiver.value == [])
    // No attempt is counted.
    let delivery = try await nodes.owner.engine.receive(
      from: .orders, lease: .seconds(1), waitingUpTo: .seconds(60)
    ).first
    #expect(delivery?.attempt == 1)
    await nodes.stop()
  }

  @Test func `a receiver that leaves does not wait until its node has the message`() async throws {
    let nodes = try await Nodes()
    try await nodes.publishUnread()
    let hasReturned = Mutex(false)
    let receiver = Task {
      defer { hasReturned.withLock { $0 = true } }
      return try await nodes.late.engine.receive(from: .orders, lease: .seconds(600))
    }
    try await nodes.waitForLease()
    receiver.cancel()
    // It would wait for half of the lease.
    try await eventually("it returns") { hasReturned.withLock { $0 } }
    #expect(try await receiver.value == [])
    let delivery = try await nodes.owner.engine.receive(
      from: .orders, lease: .seconds(1), waitingUpTo: .seconds(60)
    ).first
    #expect(delivery?.attempt == 1)
    await nodes.stop()
  }
}
