import FaultVFS
import FileLayer
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import SealedSQLite
import TestSupport
import VaultCrypto

/// The work of a whole engine on its database: shared commits, two consumers, retention, the
/// caller's own rows, a clean stop.
///
/// Each commit is noted before a caller that waits for it resumes.
struct EngineLifeWork {
  private let recording: WorkRecording
  private let time = ManualTimeSource()
  private let orders: Channel
  private let audit: Consumer

  init(_ recording: WorkRecording) throws {
    self.recording = recording
    orders = try Channel("orders")
    audit = try Consumer("audit")
  }

  func record(_ workload: CrashWorkload) async throws -> RecordedWork {
    try prepare(workload)
    try recording.begin()
    let pool = try recording.openPool()
    let notes = noteCommits(of: pool)
    let engine = try MessagingEngine(
      pool: pool, time: time, isSecured: true, closePool: { try pool.close() })
    switch workload {
    case .together: try await publishTogether(engine, pool)
    case .settling: try await settle(engine)
    case .retention: try await retain(engine)
    default: try await publishWithRows(engine)
    }
    try await engine.stop()
    if let failure = notes.failure { throw failure }
    return recording.finish()
  }

  private func prepare(_ workload: CrashWorkload) throws {
    let pool = try recording.openPool()
    let database = try TestQueue(pool: pool, time: time)
    let count = workload == .retention ? 24 : workload == .settling ? 8 : 2
    _ = try database.publish((0..<count).map { message("start \($0)", size: $0 % 3 * 700) })
    try pool.write { try $0.execute(sql: "CREATE TABLE invoice (number INTEGER PRIMARY KEY)") }
    try pool.close()
  }

  private func noteCommits(of pool: DatabasePool) -> CommitNotes {
    let notes = CommitNotes(recording)
    pool.writeWithoutTransaction { db in
      notes.databaseDidCommit(db)
      db.add(transactionObserver: notes, extent: .databaseLifetime)
    }
    return notes
  }

  private func message(
    _ text: String, to channel: Channel? = nil, key: String? = nil, size: Int = 0
  ) -> Message {
    var message = Message(
      channel: channel ?? orders, payload: Array(text.utf8) + [UInt8](repeating: 46, count: size))
    message.orderingKey = key
    return message
  }

  /// Publishers and receivers that wait at the same time share a commit.
  private func publishTogether(_ engine: MessagingEngine, _ pool: DatabasePool) async throws {
    for round in 0..<4 {
      var urgent = message("urgent \(round)")
      urgent.priority = try Priority(9)
      urgent.headers = ["round": "\(round)"]
      urgent.deduplicationID = "\(round)"
      let publications = [
        [message("\(round) a", key: "k")], [message("\(round) b", key: "k", size: 3000)], [urgent],
        (0..<5).map { message("\(round) batch \($0)", size: 200) },
      ]
      let (orders, audit) = (orders, audit)
      var operations: [@Sendable () async throws -> Void] = publications.map { messages in
        { try await engine.publish(messages) }
      }
      operations.append { _ = try await engine.receive(from: orders, for: audit, maximumCount: 3) }
      operations.append { [urgent] in try await engine.publish(urgent) }
      try await Self.atOnce(operations, engine, pool)
      let deliveries = try await engine.receive(from: orders, maximumCount: 4)
      try await Self.atOnce(
        deliveries.map { delivery in { try await engine.acknowledge([delivery.token]) } }, engine,
        pool)
    }
  }

  private static func atOnce(
    _ operations: [@Sendable () async throws -> Void], _ engine: MessagingEngine,
    _ pool: DatabasePool
  ) async throws {
    let leave = DispatchSemaphore(value: 0)
    pool.asyncWriteWithoutTransaction { _ in leave.wait() }
    var callers: [Task<Void, any Error>] = []
    do {
      defer { leave.signal() }
      for operation in operations {
        callers.append(Task { try await operation() })
        try await eventually { engine.waitingCount >= callers.count }
      }
    }
    for caller in callers { try await caller.value }
  }

  /// Settles deliveries in every way.
  private func settle(_ engine: MessagingEngine) async throws {
    try await engine.addConsumer(audit, of: orders, maximumAttempts: 2)
    for number in 0..<3 { try await engine.publish(message("keyed \(number)", key: "k")) }
    let held = try await engine.receive(from: orders, maximumCount: 6)
    try await engine.extend(held.prefix(3).map(\.token), by: .seconds(90))
    try await engine.acknowledge(held.prefix(2).map(\.token))
    try await engine.release([held[2].token], after: .seconds(10), reason: "later")
    try await engine.reject([held[3].token], reason: "never")
    try await engine.release([held[4].token])
    // Each of them fails twice for the second consumer: by its lease, and by a release.
    _ = try await engine.receive(from: orders, for: audit, maximumCount: 4)
    time.advance(by: .seconds(31))
    let again = try await engine.receive(from: orders, for: audit, maximumCount: 9)
    try await engine.release(again.filter { $0.attempt == 2 }.map(\.token), reason: "no")
    let dead = try await engine.deadLetters(of: orders, for: audit)
    try await engine.redrive([dead[0].timetoken], of: orders, for: audit)
    try await engine.removeDeadLetters([dead[1].timetoken], of: orders, for: audit)
    try await engine.redrive(of: orders)
    time.advance(by: .seconds(31))
    for consumer in [Consumer.default, audit] {
      let last = try await engine.receive(from: orders, for: consumer, maximumCount: 100)
      try await engine.acknowledge(last.map(\.token))
    }
    try await engine.removeConsumer(audit, of: orders)
  }

  /// Sweeps, a purge, and space given back.
  private func retain(_ engine: MessagingEngine) async throws {
    var retention = Retention()
    retention.keepsAcknowledged = true
    retention.maximumMessageCount = 6
    try await engine.setRetention(retention, of: orders)
    let held = try await engine.receive(from: orders, maximumCount: 20)
    try await engine.acknowledge(held.map(\.token))
    try await engine.maintain()
    try await engine.publish((0..<20).map { message("more \($0)", size: 900) })
    retention.discardsUnacknowledged = true
    retention.maximumAge = .seconds(60)
    try await engine.setRetention(retention, of: orders)
    try await engine.maintain()
    try await engine.compact()
    let bulk = try Channel("bulk")
    let timetokens = try await engine.publish(
      (0..<12).map { message("bulk \($0)", to: bulk, size: 2000) })
    _ = try await engine.receive(from: bulk, maximumCount: 3)
    try await engine.purge(bulk, before: timetokens[8])
    time.advance(by: .seconds(61))
    try await engine.maintain()
    try await engine.compact()
    try await engine.publish(message("last"))
  }

  private func publishWithRows(_ engine: MessagingEngine) async throws {
    for number in 0..<6 {
      let message = message("invoice \(number)", key: "k", size: number * 400)
      try await engine.write { db in
        try db.execute(sql: "INSERT INTO invoice VALUES (?)", arguments: [number])
        try engine.publish(message, in: db)
        if number == 3 { try engine.publish([message, message], in: db) }
      }
      try await engine.publish(self.message("between"))
    }
    try await settleWithRows(engine)
  }

  /// Every settlement in a transaction with a row: the checker knows no state with one of the two.
  private func settleWithRows(_ engine: MessagingEngine) async throws {
    let (orders, audit) = (orders, audit)
    try await engine.addConsumer(audit, of: orders, maximumAttempts: 1)
    try await engine.publish((0..<15).map { message("settled \($0)") })
    for number in 100..<103 {
      let held = try await engine.write { db in
        try db.execute(sql: "INSERT INTO invoice VALUES (?)", arguments: [number])
        return try engine.receive(from: orders, for: audit, maximumCount: 5, in: db)
      }
      let tokens = held.map(\.token)
      guard tokens.count == 5 else { throw CrashTestError("received \(tokens.count) messages") }
      try await engine.write { db in
        try db.execute(sql: "UPDATE invoice SET number = number + 100 WHERE number = \(number)")
        try engine.acknowledge([tokens[0], tokens[1]], in: db)
        try engine.extend(tokens[2], by: .seconds(90), in: db)
        try engine.release(tokens[3], after: .seconds(1), countsAttempt: false, in: db)
      }
      try await engine.write { db in
        try db.execute(sql: "DELETE FROM invoice WHERE number = \(number - 100)")
        try engine.reject(tokens[2], reason: "never", in: db)
        // Its only attempt.
        guard try engine.release(tokens[4], in: db) else { throw CrashTestError("it lives") }
      }
      struct Undone: Error {}
      do {
        try await engine.write { db in
          try db.execute(sql: "DELETE FROM invoice")
          _ = try engine.receive(from: orders, for: audit, maximumCount: 5, in: db)
          throw Undone()
        }
      } catch is Undone {}
    }
  }
}

/// Notes the contents of the database after each commit of a pool's writer.
private final class CommitNotes: TransactionObserver {
  private let recording: WorkRecording
  private(set) var failure: (any Error)?

  init(_ recording: WorkRecording) { self.recording = recording }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidRollback(_ db: Database) {}

  func databaseDidCommit(_ db: Database) {
    do {
      try recording.acknowledge(db)
    } catch {
      failure = error
    }
  }
}

extension WorkRecording {
  /// Notes the contents of a database that a pool has open.
  func acknowledge(_ db: Database) throws {
    guard let pointer = db.sqliteConnection else { return }
    try acknowledge(SQLConnection(borrowing: pointer))
  }

  /// A pool over the recording.
  func openPool() throws -> DatabasePool {
    switch form {
    case .sealed:
      try SealedDatabase.openPool(
        at: database, key: SecretBytes(copying: FileForm.keyBytes), over: vfs)
    case .plain:
      try DatabasePool(path: "file:\(database)?vfs=\(vfs)")
    }
  }
}
