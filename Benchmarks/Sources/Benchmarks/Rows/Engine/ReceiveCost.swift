import DataVault
import Foundation
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// The cost of receiving and acknowledging 100 messages at a time, compared with the bare
/// statements.
///
/// The statements run on plain SQLite without an engine.
enum ReceiveCost {
  static let name = "receive + acknowledge 100 at a time, FULL / the same SQL, plain"

  private static let batchSize = 100
  private static let batchCount = 30

  static func measure(folder: FilePath, rounds: Int) async throws -> ResultRow {
    var comparison = Comparison(name, goal: .atMost(1.4, limit: 1.8))
    let count = (rounds + 1) * batchSize * batchCount
    let engine = try await MessagingEngine.start(DataVaultHome(folder.appending("sealed")))
    let channel = try Channel("benchmark")
    let message = Message(channel: channel, payload: [UInt8](repeating: 7, count: 1024))
    for _ in 0..<count / 1000 {
      try await engine.publish(Array(repeating: message, count: 1000))
    }
    let plain = folder.appending("plain")
    try FileManager.default.createDirectory(
      atPath: plain.string, withIntermediateDirectories: true)
    let statements = try BatchedStatements(
      plain.appending("queue.db"), count: count, batchSize: batchSize)
    // The first round fills the caches and does not count.
    for round in 0...rounds {
      func other() throws -> Cost {
        try Cost.of { for _ in 0..<batchCount { try statements.receiveAndAcknowledge() } }
      }
      let before = round.isMultiple(of: 2) ? nil : try other()
      let ours = try await Cost.of { try await work(on: engine, channel) }
      let pair = (ours: ours, other: try before ?? other())
      if round > 0 { comparison.add(ours: pair.ours, other: pair.other) }
    }
    try await engine.stop()
    return comparison.row
  }

  private static func work(on engine: MessagingEngine, _ channel: Channel) async throws {
    for _ in 0..<batchCount {
      let deliveries = try await engine.receive(from: channel, maximumCount: batchSize)
      guard deliveries.count == batchSize else { throw BenchmarkError("messages are missing") }
      try await engine.acknowledge(deliveries.map(\.token))
    }
  }
}
