import FileLayer
import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport

/// What a run of ``NodeSoak`` does.
struct SoakSettings {
  var seed: UInt64 = 1
  var nodeCount = 3
  var duration: Duration = .seconds(2)
  /// How long brokers keep records without a sync; zero: they forget nothing.
  var syncInterval: Duration = .zero
}

/// Real nodes over a log in memory, with publishers, workers, operations and faults that a seed chooses.
///
/// The channel `work` keeps all messages, so that a ``SoakJudge`` can look for each of them. From `mixed` messages are
/// removed in every way.
final class NodeSoak: Sendable {
  let settings: SoakSettings
  let judge: SoakJudge
  private let shard: TestShard
  private let nodes: Mutex<[TestNode?]>
  private let isOver = Atomic(false)

  static let work = Channel.named("work")
  static let mixed = Channel.named("mixed")
  static let other = Channel.named("other")
  static let limited = Consumer.named("limited")
  static let extra = Consumer.named("extra")

  init(_ settings: SoakSettings) throws {
    self.settings = settings
    judge = SoakJudge(brokersForget: settings.syncInterval > .zero)
    shard = try TestShard()
    nodes = Mutex(Array(repeating: nil, count: settings.nodeCount))
  }

  /// Runs, heals and judges.
  func run() async throws {
    for slot in 0..<settings.nodeCount { try await start(slot, in: ScratchFolder()) }
    try await prepare()
    try await withThrowingTaskGroup { group in
      for publisher in 0..<settings.nodeCount * 2 {
        group.addTask { try await self.publish(as: publisher, self.random(publisher)) }
      }
      for worker in 0..<4 {
        group.addTask { try await self.work(as: worker, self.random(100 + worker)) }
      }
      group.addTask { try await self.operate(self.random(200)) }
      group.addTask { try await self.disturb(self.random(300)) }
      // The length of the soak.
      try await Task.sleep(for: settings.duration)
      isOver.store(true, ordering: .relaxed)
      try await group.waitForAll()
    }
    try await conclude()
  }

  private func random(_ stream: Int) -> SeededRandom {
    SeededRandom(seed: settings.seed &* 1_000_003 &+ UInt64(stream))
  }

  var goesOn: Bool { !isOver.load(ordering: .relaxed) }

  func node(_ slot: Int) -> TestNode? { nodes.withLock { $0[slot] } }

  func anyEngine(_ random: inout SeededRandom) -> MessagingEngine? {
    node(Int.random(in: 0..<settings.nodeCount, using: &random))?.engine
  }

  // MARK: Nodes

  private func start(_ slot: Int, in folder: ScratchFolder) async throws {
    let syncInterval = settings.syncInterval
    let node = try await TestNode(shard, member: UInt128(slot + 1), folder: folder) {
      $0.syncInterval = syncInterval
      $0.patience = .seconds(1)
      $0.requestPatience = .milliseconds(300)
      $0.readWait = .milliseconds(20)
      $0.ownership.heartbeatInterval = .milliseconds(50)
      $0.ownership.heartbeatLimit = .milliseconds(250)
      $0.ownership.silence = .milliseconds(200)
      $0.ownership.longestLease = .milliseconds(400)
      $0.ownership.margin = .milliseconds(20)
      $0.relay.patience = .milliseconds(200)
      $0.trim.step = 50
      $0.reportStep = 25
      $0.reportInterval = .milliseconds(100)
    }
    nodes.withLock { $0[slot] = node }
  }

  private func stop(_ slot: Int) async -> ScratchFolder? {
    guard let node = nodes.withLock({ $0[slot].take() }) else { return nil }
    let folder = await node.stop()
    if let error = await node.end(), !(error is CancellationError) {
      judge.fail("node \(slot + 1) has stopped: \(error)")
    }
    return folder
  }

  private func prepare() async throws {
    guard let engine = node(0)?.engine else { return }
    var retention = Retention()
    retention.keepsAcknowledged = true
    // Again, as a loaded machine can be slower than the patience of callers.
    try await eventually("prepared") { [retention] in
      do throws(EngineError) {
        try await engine.setRetention(retention, of: Self.work)
        try await engine.addConsumer(Self.limited, of: Self.mixed, maximumAttempts: 3)
        return true
      } catch {
        guard error.code == .outcomeUnknown else { throw error }
        return false
      }
    }
  }

  // MARK: Faults

  private func disturb(_ start: SeededRandom) async throws {
    var random = start
    while goesOn {
      try await pause(20...(random.oneIn(3) ? 1_000 : 200), &random)
      if !goesOn { break }
      judge.noteFault()
      let slot = Int.random(in: 0..<settings.nodeCount, using: &random)
      switch random.next(settings.syncInterval > .zero ? 12 : 6) {
      case 0:
        let member = MemberID(UInt128(slot + 1))
        node(slot)?.log.setCutOff(true)
        shard.exchange.setLoss { recipient, bytes in
          recipient == member || Array(bytes.dropFirst(22).prefix(16)) == member.bytes
        }
        try await pause(50...500, &random)
        node(slot)?.log.setCutOff(false)
        shard.exchange.setLoss(nil)
      case 1:
        shard.log.setDown(true)
        try await pause(20...200, &random)
        shard.log.setDown(false)
      case 2, 3:
        guard let folder = await stop(slot) else { break }
        try await pause(1...200, &random)
        try await self.start(slot, in: folder)
      case 4:
        let chance = Mutex(random)
        shard.log.setTransmission { records in chance.withLock { Self.transmit(records, &$0) } }
        try await pause(50...300, &random)
        shard.log.setTransmission(nil)
      case 5:
        let chance = Mutex(random)
        shard.exchange.setLoss { _, _ in
          chance.withLock { Int.random(in: 0..<4, using: &$0) == 0 }
        }
        try await pause(50...300, &random)
        shard.exchange.setLoss(nil)
      default:
        let most = Int.random(in: 1...60, using: &random)
        judge.noteFault(
          undone: shard.log.forget(most, storedWithin: settings.syncInterval * 3 / 4))
      }
    }
  }

  /// Loses, repeats and reorders.
  private static func transmit(
    _ records: [SealedRecord], _ random: inout SeededRandom
  ) -> [SealedRecord] {
    var sent = records.flatMap { record in
      Array(repeating: record, count: [0, 1, 1, 1, 1, 2].randomElement(using: &random) ?? 1)
    }
    if Bool.random(using: &random) { sent.shuffle(using: &random) }
    return sent
  }

  func pause(_ milliseconds: ClosedRange<Int>, _ random: inout SeededRandom) async throws {
    // Clients and faults come at random moments.
    try await Task.sleep(for: .milliseconds(Int.random(in: milliseconds, using: &random)))
  }

  // MARK: The end

  /// Heals everything, compares the nodes, and has workers take what is left.
  private func conclude() async throws {
    shard.log.setDown(false)
    shard.log.setTransmission(nil)
    shard.exchange.setLoss(nil)
    let running = nodes.withLock { $0.compactMap(\.self) }
    guard running.count == settings.nodeCount else { return judge.fail("a node does not run") }
    do {
      try await expectAllThere(running)
      try await judgeRows(running)
      try await drain(running)
      try await judgeRows(running)
    } catch { judge.fail("\(error)") }
    for slot in 0..<settings.nodeCount { _ = await stop(slot) }
  }

  private func expectAllThere(_ running: [TestNode]) async throws {
    for node in running {
      node.log.setCutOff(false)
      // A node writes of itself all the time.
      let left = try await node.outbox()
      try await eventually("all in the log") { try await node.outbox().isDisjoint(with: left) }
    }
  }

  private func judgeRows(_ running: [TestNode]) async throws {
    try await eventually("nodes at the end of the log") {
      shard.log.setDown(true)
      // Nothing comes any more: what was read is being applied.
      try await Task.sleep(for: .milliseconds(50))
      let last = shard.log.firstSequence + UInt64(shard.log.count) - 1
      if running.allSatisfy({ $0.node.position == last }) { return true }
      shard.log.setDown(false)
      // The nodes read what has come.
      try await Task.sleep(for: .milliseconds(200))
      return false
    }
    defer { shard.log.setDown(false) }
    var rows: [[String]] = []
    for node in running { rows.append(try await node.rows()) }
    for (index, other) in rows.enumerated() where other != rows[0] {
      let differences = other.difference(from: rows[0]).prefix(6).map { "\($0)".prefix(200) }
      judge.fail("node \(index + 1) differs from node 1: \(differences)")
    }
    let texts = try await running[0].texts(of: Self.work).map(Self.name)
    let open = try await running[0].pool.read { db in
      try Data.fetchAll(
        db,
        sql: """
          SELECT payload FROM message JOIN channel ON channel.id = message.channel_id
            JOIN consumer ON consumer.channel_id = channel.id
          WHERE channel.name = 'work' AND (
            message.timetoken > ifnull((SELECT timetoken FROM position
              WHERE consumer_id = consumer.id AND priority = message.priority), 0)
            OR EXISTS (SELECT 1 FROM delivery
              WHERE consumer_id = consumer.id AND delivery.timetoken = message.timetoken))
          """)
    }
    judge.judge(texts, open: Set(open.map { Self.name(String(decoding: $0, as: UTF8.self)) }))
  }

  /// Has one worker acknowledge everything: nothing is stuck.
  private func drain(_ running: [TestNode]) async throws {
    let engine = running[running.count - 1].engine
    try await eventually("all acknowledged") {
      let begun = ContinuousClock.now
      let deliveries = try await engine.receive(
        from: Self.work, maximumCount: 500, lease: .milliseconds(400),
        waitingUpTo: .milliseconds(500))
      for delivery in deliveries {
        let text = Self.name(delivery.text)
        judge.noteReceived(
          text, for: "default", by: -1, begun: begun, until: begun + .milliseconds(400))
        judge.willSettle(text, for: "default", acknowledges: true)
      }
      await acknowledge(deliveries, at: engine)
      let consumers = try await engine.statistics(of: Self.work)?.consumers ?? []
      return deliveries.isEmpty && consumers.allSatisfy { $0.messageCount == 0 }
    }
  }

  /// Acknowledges messages of the channel that nothing is removed from.
  func acknowledge(_ deliveries: [Delivery], at engine: MessagingEngine) async {
    var failure: EngineError?
    do throws(EngineError) {
      try await engine.acknowledge(deliveries.map(\.token))
    } catch {
      judge.check(error, "acknowledging", expected: .unknownLease)
      failure = error
    }
    for delivery in deliveries {
      let counts =
        failure?.code == .unknownLease && failure?.unknownLeases.contains(delivery.token) == false
      judge.noteAcknowledgement(
        Self.name(delivery.text), for: "default", counts ? nil : failure)
    }
  }

  /// A message's name is its payload up to the first space.
  static func name(_ text: String) -> String {
    text.split(separator: " ", maxSplits: 1).first.map(String.init) ?? text
  }
}

extension Channel {
  static func named(_ name: String) -> Channel {
    guard let channel = try? Channel(name) else { preconditionFailure("a valid name") }
    return channel
  }
}

extension Consumer {
  static func named(_ name: String) -> Consumer {
    guard let consumer = try? Consumer(name) else { preconditionFailure("a valid name") }
    return consumer
  }
}
