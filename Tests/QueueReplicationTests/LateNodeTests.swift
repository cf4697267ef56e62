import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
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
        configuration.ownership.longestLease = .seconds(8)
        configuration.requestPatience = requestPatience
      }
      let owner = try await TestNode(shard, member: 1, change)
      try await eventually("an owner") { owner.node.isOwner }
      self.owner = owner
      late = try await TestNode(shard, member: 2, change)
      try await late.engine.addConsumer(.default, of: .orders)
      try await expectEqual(owner, late)
    }

    func publishUnread() async throws {
      late.log.setCutOff(true)
      try await owner.engine.publish(Message("one"))
    }

    func stop() async {
      await late.stop()
      await owner.stop()
    }
  }

  @Test func `an extension that the owner does not answer loses no lease`() async throws {
    let nodes = try await Nodes(requestPatience: .seconds(1))
    try await nodes.owner.engine.publish(Message("one"))
    let delivery = try #require(
      try await nodes.late.engine.receive(
        from: .orders, lease: .seconds(8), waitingUpTo: .seconds(60)
      ).first)
    nodes.shard.exchange.setLoss { _, _ in true }
    let error = await #expect(throws: EngineError.self) {
      try await nodes.late.engine.extend(delivery.token, by: .seconds(8))
    }
    #expect(error?.code == .busy && error?.hint != nil)
    nodes.shard.exchange.setLoss(nil)
    try await nodes.late.engine.extend(delivery.token, by: .seconds(8))
    try await nodes.late.engine.acknowledge(delivery.token)
    await nodes.stop()
  }

  @Test func `a node that is behind gives leases back before they end`() async throws {
    let nodes = try await Nodes()
    try await nodes.publishUnread()
    #expect(try await nodes.late.engine.receive(from: .orders, lease: .seconds(1)) == [])
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
    let receiver = Task {
      try await nodes.late.engine.receive(from: .orders, lease: .seconds(8))
    }
    try await Task.sleep(for: .milliseconds(100))
    let start = ContinuousClock.now
    receiver.cancel()
    #expect(try await receiver.value == [])
    // Half of the lease is 4 s.
    #expect(ContinuousClock.now - start < .seconds(3))
    let delivery = try await nodes.owner.engine.receive(
      from: .orders, lease: .seconds(1), waitingUpTo: .seconds(60)
    ).first
    #expect(delivery?.attempt == 1)
    await nodes.stop()
  }
}
