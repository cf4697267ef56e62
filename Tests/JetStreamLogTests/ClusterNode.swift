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
final class ClusterNode: Sendable {
  private final class Ending: Sendable {
    let error = Mutex<(any Error)?>(nil)
  }

  private static let channel = try? Channel("orders")
  let engine: MessagingEngine
  let node: ReplicaNode
  private let log: JetStreamLog
  private let pool: DatabasePool
  private let running: Task<Void, any Error>
  private let ending = Ending()

  /// - Parameters:
  ///   - path: of the database; one that is there is of an earlier process of the same member.
  ///   - addresses: default: nil, those of all brokers.
  ///   - tables: SQL that makes tables of a server in a new database; nil for none.
  init(
    _ shard: BrokerShard, member number: UInt128, at path: String, addresses: [String]? = nil,
    tables: String? = nil, configure: (inout NodeConfiguration) -> Void = { _ in }
  ) async throws {
    let time = try SystemTimeSource()
    pool = try DatabasePool(path: path)
    let first = try MessagingEngine(pool: pool, time: time, isSecured: true)
    let ring = try shard.ring()
    if !first.isReplicated {
      try await first.write { [shard = ring.shard] db in
        if let tables { try db.execute(sql: tables) }
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
    configuration.reportInterval = .seconds(1)
    configure(&configuration)
    log = try shard.log { $0.addresses = addresses ?? $0.addresses }
    let node = try await ReplicaNode.start(
      engine, member: MemberID(number), ring: ring, log: log, members: log, time: time,
      configuration: configuration)
    self.node = node
    running = Task { [ending] in
      do {
        try await node.run()
      } catch {
        ending.error.withLock { $0 = error }
        throw error
      }
    }
  }

  /// Why it has stopped by itself; nil while it works.
  var alarm: ReplicationError? { ending.error.withLock { $0 as? ReplicationError } }

  /// Publishes texts in their order, and again until each is acknowledged.
  func publish(_ texts: [String], _ witness: Witness) async throws {
    let channel = try #require(Self.channel)
    for text in texts {
      while true {
        do {
          let place = try await engine.publish(
            Message(
              channel: channel, payload: Array(text.utf8), deduplicationID: String(text.prefix(100))
            ))
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
  func work(_ witness: Witness) async throws {
    let channel = try #require(Self.channel)
    while !Task.isCancelled {
      let deliveries =
        (try? await engine.receive(
          from: channel, maximumCount: 5, lease: .seconds(4), waitingUpTo: .milliseconds(500)))
        ?? []
      for delivery in deliveries {
        let text = String(decoding: delivery.payload, as: UTF8.self)
        witness.state.withLock { if $0.done.contains(text) { $0.deliveredAfterDone.append(text) } }
        do {
          try await engine.acknowledge(delivery.token)
          witness.state.withLock { _ = $0.done.insert(text) }
        } catch {
          // Lost or unknown: it comes again, unless the acknowledgement counts.
        }
      }
      if deliveries.isEmpty { try? await Task.sleep(for: .milliseconds(20)) }
    }
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
final class Witness: Sendable {
  struct State: Sendable {
    var acknowledged: [String] = []
    var done: Set<String> = []
    var deliveredAfterDone: [String] = []
    var places: Set<Timetoken> = []
  }
  let state = Mutex(State())
}
