import BrokerCluster
import FileLayer
import Foundation
import GRDB
import JetStreamLog
import MessagingQueue
import QueueReplication
import Replication
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// A node on a plain database, over the brokers of a test.
private final class ClusterNode: Sendable {
  let engine: MessagingEngine
  let node: ReplicaNode
  private let log: JetStreamLog
  private let pool: DatabasePool
  private let running: Task<Void, any Error>

  /// - Parameter path: of the database; one that is there is of an earlier process of the same member.
  init(_ shard: BrokerShard, member number: UInt128, at path: String) async throws {
    let time = try SystemTimeSource()
    pool = try DatabasePool(path: path)
    let first = try MessagingEngine(pool: pool, time: time, isSecured: true)
    let ring = try shard.ring()
    if !first.isReplicated {
      try await first.write { [shard = ring.shard] db in
        try ReplicationSchema.make(shard: shard, member: MemberID(number), db)
      }
    }
    engine = try MessagingEngine(pool: pool, time: time, isSecured: true)
    var configuration = NodeConfiguration()
    configuration.syncInterval = .seconds(1)
    configuration.readWait = .milliseconds(100)
    configuration.receiveInterval = .milliseconds(200)
    configuration.ownership.heartbeatInterval = .milliseconds(200)
    configuration.ownership.heartbeatLimit = .seconds(1)
    configuration.ownership.silence = .seconds(2)
    configuration.ownership.longestLease = .seconds(4)
    configuration.ownership.margin = .milliseconds(100)
    configuration.patience = .seconds(30)
    log = try shard.log()
    let node = try await ReplicaNode.start(
      engine, member: MemberID(number), ring: ring, log: log, members: log, time: time,
      configuration: configuration)
    self.node = node
    running = Task { try await node.run() }
  }

  func stop() async {
    running.cancel()
    _ = await running.result
    log.close()
    try? await engine.stop()
  }

  /// The texts of a channel, in the order of the log.
  func texts() async throws -> [String] {
    try await pool.read {
      try Data.fetchAll($0, sql: "SELECT payload FROM message ORDER BY timetoken")
    }
    .map { String(decoding: $0, as: UTF8.self) }
  }

  /// What the log decides, to compare nodes.
  func rows() async throws -> [String] {
    try await pool.read { db in
      try [
        "SELECT * FROM message", "SELECT * FROM delivery", "SELECT * FROM position",
        "SELECT * FROM deduplication", "SELECT state FROM replication_state",
      ].flatMap { sql in try Row.fetchAll(db, sql: sql).map(\.description) }
    }
  }
}

/// What publishers and workers know.
private final class Witness: Sendable {
  struct State: Sendable {
    var acknowledged: [String] = []
    var done: Set<String> = []
    var deliveredAfterDone: [String] = []
    var places: Set<Timetoken> = []
  }
  let state = Mutex(State())
}

@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .serialized)
struct ClusterTests {
  private static let channel = try? Channel("orders")
  private let folder = ScratchFolder()

  /// Publishes texts in their order, and again until each is acknowledged.
  private func publish(_ texts: [String], on node: ClusterNode, _ witness: Witness) async throws {
    let channel = try #require(Self.channel)
    for text in texts {
      while true {
        do {
          let place = try await node.engine.publish(
            Message(channel: channel, payload: Array(text.utf8), deduplicationID: text))
          witness.state.withLock {
            $0.acknowledged.append(text)
            $0.places.insert(place)
          }
          break
        } catch { try await Task.sleep(for: .milliseconds(50)) }
      }
    }
  }

  /// Leases and acknowledges until the task is cancelled.
  private func work(on node: ClusterNode, _ witness: Witness) async throws {
    let channel = try #require(Self.channel)
    while !Task.isCancelled {
      let deliveries =
        (try? await node.engine.receive(
          from: channel, maximumCount: 5, lease: .seconds(4), waitingUpTo: .milliseconds(500)))
        ?? []
      for delivery in deliveries {
        let text = String(decoding: delivery.payload, as: UTF8.self)
        witness.state.withLock { if $0.done.contains(text) { $0.deliveredAfterDone.append(text) } }
        do {
          try await node.engine.acknowledge(delivery.token)
          witness.state.withLock { _ = $0.done.insert(text) }
        } catch {
          // Lost or unknown: it comes again, unless the acknowledgement counts.
        }
      }
      if deliveries.isEmpty { try? await Task.sleep(for: .milliseconds(20)) }
    }
  }

  private func files(under path: String) throws -> [[UInt8]] {
    try FileManager.default.subpathsOfDirectory(atPath: path).compactMap {
      FileManager.default.contents(atPath: "\(path)/\($0)").map(Array.init)
    }
  }

  private func contains(_ bytes: [UInt8], _ needle: [UInt8]) -> Bool {
    Data(bytes).range(of: Data(needle)) != nil
  }

  @Test(.timeLimit(.minutes(5)))
  func `nothing acknowledged is lost while brokers and a node are killed`() async throws {
    let shard = try BrokerShard()
    let cluster = shard.cluster
    let operatorLog = try await shard.provisioned(replicas: 3)
    let witness = Witness()
    let a = try await ClusterNode(shard, member: 1, at: folder.path("a.db"))
    let b = try await ClusterNode(shard, member: 2, at: folder.path("b.db"))
    let texts = (0..<4).map { publisher in (0..<60).map { "\(publisher)-\($0)" } }

    let workers = Task {
      await withTaskGroup(of: Void.self) { group in
        for node in [a, b] { group.addTask { try? await work(on: node, witness) } }
      }
    }
    let publishers = Task {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, list) in texts.enumerated() {
          group.addTask {
            for part in stride(from: 0, to: list.count, by: 10) {
              try await publish(
                Array(list[part..<min(part + 10, list.count)]), on: number % 2 == 0 ? a : b, witness
              )
              try await Task.sleep(for: .milliseconds(300))
            }
          }
        }
        try await group.waitForAll()
      }
    }
    try await Task.sleep(for: .seconds(1))
    let leader = try operatorLog.status().leader
    let killed = (0..<3).first { cluster.name(of: $0) == leader } ?? 0
    cluster.signal(killed, SIGKILL)
    try await Task.sleep(for: .seconds(1))
    try cluster.start(killed)
    try await Task.sleep(for: .seconds(6))
    for index in 0..<3 { cluster.signal(index, SIGKILL) }
    for index in 0..<3 { try cluster.start(index) }
    try await publishers.value

    let all = texts.flatMap(\.self)
    try await eventually(within: .seconds(120), "all work is done") {
      witness.state.withLock { $0.done.count } == all.count
    }
    workers.cancel()
    await workers.value
    try await eventually("the nodes are equal") { try await a.rows() == b.rows() }
    let known = witness.state.withLock(\.self)
    #expect(Set(known.acknowledged) == Set(all) && known.places.count == all.count)
    #expect(known.deliveredAfterDone.isEmpty)

    // Another process of a member begins where the first one ended.
    await b.stop()
    try await publish(["last, and confidential"], on: a, witness)
    let again = try await ClusterNode(shard, member: 2, at: folder.path("b.db"))
    try await eventually("it has caught up") { try await again.rows() == a.rows() }
    #expect(try await again.texts().last == "last, and confidential")
    let ring = try shard.ring()
    let needles =
      ["orders", "last, and confidential"].map { Array($0.utf8) }
      + [ring.encodedBytes().array()[1..<17], ring.namingSecret().array()[...]].map(Array.init)
    let disks = try (0..<3).flatMap { try files(under: cluster.store(of: $0)) }
    #expect(disks.count > 10)
    for needle in needles { #expect(!disks.contains { contains($0, needle) }) }
    for index in 0..<3 {
      for needle in needles { #expect(!contains(Array(cluster.log(of: index).utf8), needle)) }
    }
    // The same search finds them at the node.
    let own = try ["a.db", "a.db-wal"].map { try folder.bytes($0) }
    for needle in needles.prefix(2) { #expect(own.contains { contains($0, needle) }) }
    await again.stop()
    await a.stop()
    operatorLog.close()
  }
}
