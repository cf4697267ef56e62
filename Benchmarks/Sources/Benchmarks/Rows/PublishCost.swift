import DataVault
import Foundation
import GRDB
@_spi(Testing) import MessagingQueue
import SystemPackage
import VaultCrypto
import VaultedDatabase

/// The cost of publishing durable batches, compared with the same engine on an unencrypted file.
enum PublishCost {
  static let batchCount = 100
  static let messagesPerBatch = 1000

  private static let growthGoalMebibytes = 16.0

  /// The comparison, and the growth of the process from the first tenth of the sealed publishing to
  /// its end.
  static func measure(folder: FilePath, rounds: Int) async throws -> [ResultRow] {
    var comparison = Comparison(
      "publish 100 x 1,000 x 1 KiB, FULL / plain file", goal: .atMost(1.25))
    var growth = 0
    for round in 0..<rounds {
      // Each side is first in every other pair.
      if round.isMultiple(of: 2) {
        let ours = try await sealed(in: folder.appending("sealed-\(round)"), growth: &growth)
        let other = try await plain(in: folder.appending("plain-\(round)"))
        comparison.add(ours: ours, other: other)
      } else {
        let other = try await plain(in: folder.appending("plain-\(round)"))
        let ours = try await sealed(in: folder.appending("sealed-\(round)"), growth: &growth)
        comparison.add(ours: ours, other: other)
      }
    }
    return [
      comparison.row,
      ResultRow(
        "resident memory grown from 10,000 to 100,000 messages",
        Spread([Double(growth) / Double(1 << 20)]), unit: "MiB",
        goal: .atMost(growthGoalMebibytes)),
    ]
  }

  private static func sealed(in home: FilePath, growth: inout Int) async throws -> Cost {
    defer { try? FileManager.default.removeItem(atPath: home.string) }
    let engine = try await MessagingEngine.start(DataVaultHome(home))
    var grown = 0
    let cost = try await Cost.of { grown = try await publish(on: engine) }
    try await engine.stop()
    growth = max(growth, grown)
    return cost
  }

  private static func plain(in folder: FilePath) async throws -> Cost {
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    let engine = try await MessagingEngine.start(unencryptedAt: folder.appending("messaging.db"))
    let cost = try await Cost.of { _ = try await publish(on: engine) }
    try await engine.stop()
    return cost
  }

  private static func publish(on engine: MessagingEngine) async throws -> Int {
    let channel = try Channel("benchmark")
    let payload = [UInt8]((0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    var first = 0
    for batch in 0..<batchCount {
      let messages = Array(
        repeating: Message(channel: channel, payload: payload), count: messagesPerBatch)
      try await engine.publish(messages)
      if batch == batchCount / 10 { first = try ResidentMemory.byteCount() }
    }
    return try ResidentMemory.byteCount() - first
  }
}
