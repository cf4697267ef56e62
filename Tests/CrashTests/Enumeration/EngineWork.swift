import FileLayer
import FileRecording
import GRDB
import MessagingQueue
import QueueFixture

/// The work of the messaging engine on its database: publish, receive, acknowledge, release.
struct EngineWork {
  private let recording: WorkRecording
  private let time = ManualTimeSource()

  init(_ recording: WorkRecording) { self.recording = recording }

  func record(_ workload: CrashWorkload) throws -> RecordedWork {
    try withDatabase { database, _ in try publish(database, 0..<(workload == .lease ? 12 : 3)) }
    try recording.begin()
    try withDatabase { database, pool in
      try acknowledge(pool)
      if workload == .lease { return try lease(database, pool) }
      for (round, count) in zip(1..., [1, 1, 5, 1, 20, 1]) {
        try publish(database, round * 10..<round * 10 + count)
        try acknowledge(pool)
      }
    }
    return recording.finish()
  }

  private func publish(_ database: TestQueue, _ numbers: Range<Int>) throws {
    let channel = try Channel("orders")
    _ = try database.publish(
      numbers.map { number in
        Message(
          channel: channel,
          payload: Array("message \(number) ".utf8)
            + [UInt8](repeating: UInt8(number & 0x7F), count: number % 5 * 300))
      })
  }

  private func lease(_ database: TestQueue, _ pool: DatabasePool) throws {
    let channel = try Channel("orders")
    for _ in 0..<3 {
      let deliveries = try database.receive(from: channel, maximumCount: 3, lease: .seconds(30))
      try acknowledge(pool)
      try database.acknowledge(deliveries.prefix(2).map(\.token))
      try acknowledge(pool)
      try database.release(deliveries.suffix(1).map(\.token))
      try acknowledge(pool)
    }
  }

  private func acknowledge(_ pool: DatabasePool) throws {
    try pool.writeWithoutTransaction { db in try recording.acknowledge(db) }
  }

  /// Opens the pool over the recording for the time of `body`.
  private func withDatabase(_ body: (TestQueue, DatabasePool) throws -> Void) throws {
    let pool = try recording.openPool()
    defer { try? pool.close() }
    try body(TestQueue(pool: pool, time: time), pool)
  }
}
