import DataVault
import FileLayer
import FileRecording
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Synchronization
import TestSupport
import VaultedDatabase

/// Records a member's home while its node replicates it over a log that survives.
///
/// Then it starts a node on what a kill or a power cut at each step leaves, with the log as it was then.
struct MemberEnumeration {
  private let recorded = RecordedHome()
  private let log = MemoryLog()

  /// - Parameter stateCount: about how many of the states to try.
  func callAsFunction(stateCount: Int) async throws -> CrashEnumeration.Totals {
    try await record()
    return await recorded.check(
      stateCount: stateCount, from: "made", failure: "no node brings all into the log", texts)
  }

  /// Two nodes after each other publish, with and without waiting; the first ends while the log is down, with records in
  /// its outbox.
  private func record() async throws {
    let recorder = recorded.recorder
    let home = recorded.home
    let vault = try await recorded.makeVault(of: home)
    let alone = try await MessagingEngine.start(home, vault: vault)
    let settings = ClusterSettings(addresses: ["nats://127.0.0.1:4222"])
    let cluster = try await Membership.prepareFirst(alone, vault: vault, settings: settings)
    try await Membership.makeFirst(alone, vault: vault, shard: cluster.ring.shard)
    try await alone.stop()
    recorder.mark("made")
    for life in 0..<2 {
      let markingLog = MarkingLog(log, recorder)
      try await Self.replicating(home, vault, over: markingLog) { engine in
        func publish(_ numbers: ClosedRange<Int>, waits: Bool) async throws {
          for number in numbers {
            let text = "\(life)-\(number)"
            recorder.mark("publishing \(text)")
            if waits {
              try await engine.publish(Message(text))
            } else {
              try await engine.post(Message(text))
            }
            recorder.mark("published \(text)")
          }
        }
        try await publish(1...2, waits: true)
        try await publish(3...8, waits: false)
        try await publish(9...10, waits: true)
        if life == 0 { markingLog.setDown() }
        try await publish(11...13, waits: false)
      }
    }
  }

  /// What is in the log when a node has brought all of its outbox there.
  private func texts(_ state: RecordedHome.State) async throws -> [String] {
    let stored = state.notes.last { $0.hasPrefix("stored ") }?.dropFirst("stored ".count)
    let log = MemoryLog()
    try log.append(Array(self.log.records.prefix(stored.flatMap { Int($0) } ?? 0)))
    return try await recorded.withHome(of: state) { home, vault in
      let time = try SystemTimeSource()
      let connection = MemoryLogConnection(log) { time.sinceBoot }
      return try await Self.replicating(home, vault, over: connection) { engine in
        // It is appended behind what the home had promised.
        try await engine.publish(Message("last"))
        try await eventually("the outbox is empty") {
          try await engine.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM replication_outbox WHERE key > 0")
          } == 0
        }
        let texts = try await engine.history(of: .orders)
          .map { String(decoding: $0.payload, as: UTF8.self) }
        return texts.filter { $0 != "last" }
      }
    }
  }

  /// Runs `body` while a node replicates a home.
  private static func replicating<Result>(
    _ home: DataVaultHome, _ vault: Vault, over log: any ReplicatedLog,
    _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    let engine = try await MessagingEngine.start(home, vault: vault)
    let member = try await MemberNode.start(
      engine, of: home, vault: vault, configuration: TestShard.configuration,
      time: SystemTimeSource()
    ) { _, _ in MemberNode.Connection(log: log, members: MemoryExchange(), close: {}) }
    let running = Task { try await member.run() }
    do {
      let result = try await body(engine)
      running.cancel()
      _ = await running.result
      try await engine.stop()
      return result
    } catch {
      running.cancel()
      _ = await running.result
      try? await engine.stop()
      throw error
    }
  }
}

/// A log that notes in the record of a disk what it has stored, until it is down for good.
private final class MarkingLog: ReplicatedLog {
  private let log: MemoryLog
  private let connection: MemoryLogConnection
  private let recorder: FileRecorder
  private let isDown = Mutex(false)

  private struct Down: Error {}

  init(_ log: MemoryLog, _ recorder: FileRecorder) {
    self.log = log
    self.recorder = recorder
    connection = MemoryLogConnection(log) { SystemTimeSource.sinceBoot }
  }

  func setDown() { isDown.withLock { $0 = true } }

  func append(_ records: [SealedRecord]) throws {
    try isDown.withLock { isDown in
      if isDown { throw Down() }
      // Before anything can read it: a node that was cut does not know it.
      recorder.mark("stored \(log.count + records.count)")
      try connection.append(records)
    }
  }

  func read(at place: UInt64, mostBytes: Int, wait: Duration) throws -> Applier.Batch {
    if isDown.withLock(\.self) { throw Down() }
    return try connection.read(at: place, mostBytes: mostBytes, wait: wait)
  }

  func trim(through position: UInt64) throws { try connection.trim(through: position) }
}
