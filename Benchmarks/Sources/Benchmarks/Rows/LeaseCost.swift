import DataVault
import Foundation
@_spi(Testing) import MessagingQueue
import SystemPackage
import VaultedDatabase

/// The cost of durable leases and acknowledgements, one message at a time.
///
/// The reference is the same engine on an unencrypted file.
enum LeaseCost {
  private static let count = 200

  static func measure(folder: FilePath, rounds: Int) async throws -> Comparison {
    var comparison = Comparison("lease + acknowledge, FULL, through the engine", goal: .atMost(1.2))
    let path = folder.appending("plain")
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
    let sealed = try await MessagingEngine.start(DataVaultHome(folder.appending("sealed")))
    let plain = try await MessagingEngine.start(unencryptedAt: path.appending("messaging.db"))
    let channel = try Channel("benchmark")
    let payload = [UInt8](repeating: 7, count: 1024)
    for engine in [sealed, plain] {
      try await engine.publish(
        Array(repeating: Message(channel: channel, payload: payload), count: (rounds + 1) * count))
    }
    for round in 0...rounds {
      let first = try await Cost.of {
        try await work(on: round.isMultiple(of: 2) ? sealed : plain, channel)
      }
      let second = try await Cost.of {
        try await work(on: round.isMultiple(of: 2) ? plain : sealed, channel)
      }
      if round == 0 { continue }
      comparison.add(
        ours: round.isMultiple(of: 2) ? first : second,
        other: round.isMultiple(of: 2) ? second : first)
    }
    try await sealed.stop()
    try await plain.stop()
    return comparison
  }

  private static func work(on engine: MessagingEngine, _ channel: Channel) async throws {
    for _ in 0..<count {
      let deliveries = try await engine.receive(from: channel)
      guard deliveries.count == 1 else { throw BenchmarkError("a message is missing") }
      try await engine.acknowledge(deliveries.map(\.token))
    }
  }
}
