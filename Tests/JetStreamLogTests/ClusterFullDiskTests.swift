import BrokerCluster
import FileLayer
import Foundation
import JetStreamLog
import MessagingQueue
import QueueReplication
import Synchronization
import TestSupport
import Testing

/// Disks that are full: of a broker, and of a node.
@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .enabled(if: SmallDisk.isAvailable, "mounting a small tmpfs needs root"),
  .serialized, .timeLimit(.minutes(10)))
struct ClusterFullDiskTests {
  private let folder = ScratchFolder()

  private static func shard(brokers: Int) throws -> BrokerShard {
    var options = BrokerCluster.Options()
    options.count = brokers
    options.diskByteCount = 64 << 20
    return try BrokerShard(options)
  }

  private static func texts(_ name: String, _ count: Int) -> [String] {
    (0..<count).map { "\(name)-\($0) " + String(repeating: "x", count: 50_000) }
  }

  /// The bytes in the files of a broker.
  private func byteCount(of store: String) -> Int {
    let names = (try? FileManager.default.subpathsOfDirectory(atPath: store)) ?? []
    return names.filter { !$0.contains("filler") }.reduce(0) { total, name in
      total + (FileManager.default.contents(atPath: "\(store)/\(name)")?.count ?? 0)
    }
  }

  /// Has broker 0 lead the stream, or another one.
  private func elect(_ isFirst: Bool, _ log: JetStreamLog, _ cluster: BrokerCluster) async throws {
    try await eventually("another leader") {
      if (try? log.status().leader == cluster.name(of: 0)) == isFirst { return true }
      try await RawClient(cluster.port(of: 1)).request(
        "$JS.API.STREAM.LEADER.STEPDOWN.\(log.names.stream)", "")
      // Nothing shows that an election has ended.
      try await Task.sleep(for: .milliseconds(500))
      return false
    }
  }

  /// With a full disk, a leader of nats-server 2.9 can stay the leader for minutes: not in the gate.
  @Test(arguments: Exhaustive.isRequested ? [false, true] : [false])
  func `a broker whose disk is full loses nothing acknowledged, and has all when there is space`(
    isLeader: Bool
  ) async throws {
    let shard = try Self.shard(brokers: 3)
    let cluster = shard.cluster
    let disk = try #require(cluster.disk)
    let log = try await shard.provisioned(replicas: 3)
    let witness = Witness()
    let a = try await ClusterNode(shard, member: 1, at: folder.path("a.db"))
    try await a.publish(Self.texts("before", 10), witness)
    try await elect(isLeader, log, cluster)
    try disk.fill()
    try await a.publish(Self.texts("full", 30), witness)
    // It could not write them, and the others have.
    #expect(byteCount(of: cluster.store(of: 0)) + 1_000_000 < byteCount(of: cluster.store(of: 1)))
    try disk.empty()
    // nats-server 2.9 does not go on by itself after a full disk.
    cluster.signal(0, SIGKILL)
    try cluster.start(0)
    try await a.publish(Self.texts("after", 10), witness)
    try await eventually("the broker has all again") {
      let status = try? await onBlockingThread("test.status") { try log.status() }
      return status?.peers.allSatisfy { $0.isCurrent && !$0.isOffline } == true
    }
    // Another node reads all of it with this broker alone beside one that had no full disk.
    cluster.signal(1, SIGKILL)
    let b = try await ClusterNode(shard, member: 2, at: folder.path("b.db"))
    try await eventually("the nodes are equal") { try await a.rows() == b.rows() }
    #expect(try await b.texts() == witness.state.withLock(\.acknowledged))
    #expect(a.alarm == nil && b.alarm == nil)
    for node in [a, b] { await node.stop() }
    log.close()
  }

  @Test func `the only broker's full disk is an error with a hint, and loses nothing acknowledged`()
    async throws
  {
    let shard = try Self.shard(brokers: 1)
    let cluster = shard.cluster
    let disk = try #require(cluster.disk)
    let log = try await shard.provisioned(replicas: 1)
    let witness = Witness()
    let node = try await ClusterNode(shard, member: 1, at: folder.path("a.db")) {
      $0.patience = .seconds(2)
    }
    try await node.publish(Self.texts("before", 10), witness)
    try disk.fill()
    var error: EngineError?
    try await eventually("publishing fails") {
      do {
        let channel = try Channel("orders")
        let text = "at the end " + String(repeating: "x", count: 50_000)
        let place = try await node.engine.publish(
          Message(channel: channel, payload: Array(text.utf8)))
        witness.state.withLock {
          $0.acknowledged.append(text)
          $0.places.insert(place)
        }
      } catch let failure { error = failure as? EngineError }
      return error != nil
    }
    #expect(error?.code == .outcomeUnknown && error?.hint != nil)
    let refusal = #expect(throws: LogError.self) {
      try log.read(at: 1, mostBytes: 1 << 20, wait: .milliseconds(50))
    }
    #expect(refusal?.hint != nil)
    try disk.empty()
    cluster.signal(0, SIGKILL)
    try cluster.start(0)
    try await node.publish(Self.texts("after", 3), witness)
    let found = try await node.texts()
    #expect(Set(witness.state.withLock(\.acknowledged)).isSubset(of: found))
    // What had no known outcome was in the outbox, and takes effect once.
    #expect(found.count { $0.hasPrefix("at the end ") } >= 1)
    #expect(node.alarm == nil)
    await node.stop()
    log.close()
  }

  @Test func `a node whose disk is full tells it, hands the leases over, and goes on by itself`()
    async throws
  {
    var options = BrokerCluster.Options()
    options.count = 1
    let shard = try BrokerShard(options)
    let log = try await shard.provisioned(replicas: 1)
    let disk = try SmallDisk(at: folder.path("disk"), byteCount: 32 << 20)
    let witness = Witness()
    let full = try await ClusterNode(shard, member: 1, at: disk.path + "/messages.db")
    try await eventually("it owns the leases") { full.node.isOwner }
    let other = try await ClusterNode(shard, member: 2, at: folder.path("b.db"))
    try await full.publish(Self.texts("before", 10), witness)
    try await expectEqual(full, other)

    try disk.fill()
    var errors: [EngineError] = []
    try await eventually("publishing fails") {
      do {
        try await full.engine.publish(
          Message(channel: Channel("others"), payload: [UInt8](repeating: 1, count: 300_000)))
      } catch let failure as EngineError { errors.append(failure) }
      return errors.last?.code == .diskFull
    }
    #expect(errors.allSatisfy { $0.hint?.contains("make room") == true }, "\(errors)")
    // SQLite's log can have room for the outbox, and none for applying.
    for error in errors.dropLast() {
      #expect(error.code == .outcomeUnknown && error.message.contains("disk is full"), "\(error)")
    }
    // The rest of the cluster works on.
    let workers = Task { try await other.work(witness) }
    try await other.publish(Self.texts("full", 10), witness)
    try await eventually("the other node leases") {
      witness.state.withLock { $0.done.count } == 20
    }
    #expect(other.node.isOwner && !full.node.isOwner)
    workers.cancel()
    _ = await workers.result

    try disk.empty()
    try await full.publish(Self.texts("after", 3), witness)
    try await expectEqual(full, other)
    #expect(try await other.texts().count { $0.hasPrefix("after") } == 3)
    #expect(full.alarm == nil && other.alarm == nil)
    for node in [full, other] { await node.stop() }
    withExtendedLifetime(disk) {}
    log.close()
  }
}
