import DataVault
import Foundation
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// The cost of receiving from a long queue compared with a short one, and with many other channels.
enum DepthCost {
  static let name = "receive + acknowledge 100 of a deep queue"

  private static let shallow = 5_000
  private static let deep = 5_000_000
  private static let channelCount = 10_000
  private static let publishedAtOnce = 10_000
  private static let batchSize = 100
  private static let batchCount = 5

  static func measure(folder: FilePath, rounds: Int) async throws -> [ResultRow] {
    let channel = try Channel("benchmark")
    let message = Message(channel: channel, payload: [UInt8](repeating: 7, count: 64))
    let short = try await engine(
      folder.appending("short"), Array(repeating: message, count: shallow))
    let long = try await MessagingEngine.start(DataVaultHome(folder.appending("long")))
    for _ in 0..<deep / publishedAtOnce {
      try await long.publish(Array(repeating: message, count: publishedAtOnce))
    }
    let others = try (0..<channelCount).map {
      Message(channel: try Channel("channel-\($0)"), payload: message.payload)
    }
    let wide = try await engine(
      folder.appending("wide"), others + Array(repeating: message, count: shallow))

    var growth: [Double] = []
    let depth = try await compare(
      "receive + acknowledge 100 of 5,000,000 / of 5,000", long, short, channel, message, rounds,
      growth: &growth)
    let width = try await compare(
      "receive + acknowledge 100 beside 10,000 channels / beside none", wide, short, channel,
      message, rounds, growth: &growth)
    for engine in [short, long, wide] { try await engine.stop() }
    return [
      depth.row, width.row,
      ResultRow(
        "resident memory grown by receiving from 5,000,000", Spread([growth[0]]), unit: "MiB",
        goal: .atMost(8)),
    ]
  }

  private static func engine(
    _ home: FilePath, _ messages: [Message]
  ) async throws -> MessagingEngine {
    let engine = try await MessagingEngine.start(DataVaultHome(home))
    try await engine.publish(messages)
    return engine
  }

  /// Publishes received messages again, so that the depth stays constant.
  private static func compare(
    _ name: String, _ ours: MessagingEngine, _ other: MessagingEngine, _ channel: Channel,
    _ message: Message, _ rounds: Int, growth: inout [Double]
  ) async throws -> Comparison {
    var comparison = Comparison(name, goal: .atMost(1.5))
    var resident = try ResidentMemory.byteCount()
    for round in 0...rounds {
      let isOursFirst = round.isMultiple(of: 2)
      let first = try await cost(isOursFirst ? ours : other, channel, message)
      let second = try await cost(isOursFirst ? other : ours, channel, message)
      // The first round fills the caches and does not count.
      if round == 0 {
        resident = try ResidentMemory.byteCount()
      } else {
        comparison.add(
          ours: isOursFirst ? first : second, other: isOursFirst ? second : first)
      }
    }
    growth.append(Double(try ResidentMemory.byteCount() - resident) / Double(1 << 20))
    return comparison
  }

  private static func cost(
    _ engine: MessagingEngine, _ channel: Channel, _ message: Message
  ) async throws -> Cost {
    let cost = try await Cost.of {
      for _ in 0..<batchCount {
        let deliveries = try await engine.receive(from: channel, maximumCount: batchSize)
        guard deliveries.count == batchSize else { throw BenchmarkError("messages are missing") }
        try await engine.acknowledge(deliveries.map(\.token))
      }
    }
    try await engine.publish(Array(repeating: message, count: batchSize * batchCount))
    return cost
  }
}
