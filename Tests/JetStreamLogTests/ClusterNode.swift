import BrokerCluster
import FileLayer
import Foundation
import GRDB
import JetStreamLog
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// A node on a plain database, over the brokers of a test.
final class ClusterNode: Sendable, CustomStringConvertible {
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
    pool = try memberPool(at: path)
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

  var description: String {
    "applied \(node.position), owner: \(node.isOwner), alarm: \(alarm?.description ?? "none")"
  }

  /// Publishes texts in their order, and each again until it is acknowledged.
  ///
  /// - Parameters:
  ///   - key: their ordering key.
  ///   - isLocal: whether this node's disk is enough for an acknowledgement.
  func publish(
    _ texts: [String], key: String? = nil, isLocal: Bool = false, _ witness: Witness
  ) async throws {
    let channel = try #require(Self.channel)
    for text in texts {
      let message = Message(
        channel: channel, payload: Array(text.utf8), orderingKey: key,
        deduplicationID: String(text.prefix(100)))
      var failure: (any Error)?
      try await eventually(
        "\(text.prefix(20)) is published: \(failure as Any); alarm: \(alarm as Any)"
      ) {
        do {
          if isLocal {
            try await engine.post([message])
          } else {
            let place = try await engine.publish(message)
            witness.state.withLock { _ = $0.places.insert(place) }
          }
          return true
        } catch {
          failure = error
          return false
        }
      }
      witness.state.withLock { $0.acknowledged.append(text) }
    }
  }

  /// Leases and acknowledges until the task is cancelled.
  func work(_ witness: Witness) async throws {
    let channel = try #require(Self.channel)
    while !Task.isCancelled {
      // A lease can end before its message arrives here, and another worker can have done it by then.
      let done = witness.state.withLock(\.done)
      let deliveries =
        (try? await engine.receive(
          from: channel, maximumCount: 5, lease: .seconds(4), waitingUpTo: .milliseconds(500)))
        ?? []
      for delivery in deliveries {
        let text = String(decoding: delivery.payload, as: UTF8.self)
        witness.state.withLock { if $0.seen.insert(text).inserted { $0.firstSeen.append(text) } }
        if done.contains(text) { witness.state.withLock { $0.deliveredAfterDone.append(text) } }
        if await acknowledge(delivery) { witness.state.withLock { _ = $0.done.insert(text) } }
      }
      // A receive that fails does not wait.
      if deliveries.isEmpty { try? await Task.sleep(for: .milliseconds(20)) }
    }
  }

  /// Acknowledges, again while the outcome is unknown.
  ///
  /// - Returns: whether it counts; a message whose lease is lost comes again.
  private func acknowledge(_ delivery: Delivery) async -> Bool {
    while !Task.isCancelled {
      do {
        try await engine.acknowledge(delivery.token)
        return true
      } catch {
        guard error.code == .outcomeUnknown else { return false }
        // The brokers can be away for a while.
        try? await Task.sleep(for: .milliseconds(50))
      }
    }
    return false
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

  func rows() async throws -> [String] { try await replicatedRows(pool) }
}

/// Waits until nodes have the same rows; records why they do not get them.
func expectEqual(
  _ a: ClusterNode, _ b: ClusterNode, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  do {
    try await eventually("the nodes are equal") { try await a.rows() == b.rows() }
  } catch {
    let difference = try await b.rows().difference(from: a.rows()).map { "\($0)".prefix(300) }
    Issue.record(
      "\(error): \(difference); alarms: \(String(describing: a.alarm)), \(String(describing: b.alarm))",
      sourceLocation: sourceLocation)
  }
}

/// What publishers and workers know.
final class Witness: Sendable {
  struct State: Sendable {
    var acknowledged: [String] = []
    var done: Set<String> = []
    var deliveredAfterDone: [String] = []
    var seen: Set<String> = []
    /// The texts in the order of their first deliveries.
    var firstSeen: [String] = []
    var places: Set<Timetoken> = []
  }
  let state = Mutex(State())
}
