import DataVault
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// The cost of publishing compared with bare inserts: one publisher, many concurrent ones, and
/// batches.
enum PublisherCost {
  static let name = "publishers"

  private static let payload = [UInt8]((0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 7) })
  private static let publisherCount = 64
  private static let countOfEach = 100
  private static let singleCount = 500
  private static let batchCount = 20
  private static let batchSize = 1000

  /// - Parameter contestants: plain SQLite for the bare inserts, and SQLCipher if it is installed.
  static func measure(
    folder: FilePath, contestants: Contestants, rounds: Int
  ) async throws -> [ResultRow] {
    let engine = try await MessagingEngine.start(DataVaultHome(folder))
    let sqlCipher = contestants.peers.first { $0.name == Contestants.sqlCipher }?.sealed
    var single = Comparison(
      "publish one by one, FULL / bare insert, plain", goal: .atMost(1.3, limit: 1.9))
    var sameSQL = Comparison("... / the same SQL, plain", goal: .none)
    var batches = Comparison(
      "publish in batches of 1,000, FULL / bare batch, plain", goal: .atMost(1.6))
    var many = Comparison(
      "64 publishers, FULL: times as fast as a plain insert each", goal: .atLeast(3))
    var beside = Comparison("... as an insert each in SQLCipher", goal: .atLeast(5))
    // The first round fills the caches and does not count.
    for round in 0...rounds {
      let isOursFirst = round.isMultiple(of: 2)
      let plain = contestants.plain
      func plainOne() throws -> Cost {
        try BareInserts.costPerRow(on: plain, count: singleCount)
      }
      let before = isOursFirst ? nil : try plainOne()
      let one = try await oneByOne(engine)
      let other = try before ?? plainOne()
      let statements = try PublishStatements.costPerMessage(on: plain, count: singleCount)
      let sixtyFour = try await manyAtOnce(engine)
      let cipher = try sqlCipher.map { try BareInserts.costPerRow(on: $0, count: singleCount) }
      func plainBatch() throws -> Cost {
        try BareInserts.costPerRow(
          on: plain, count: batchCount * batchSize, countPerTransaction: batchSize)
      }
      let batchBefore = isOursFirst ? nil : try plainBatch()
      let batch = try await inBatches(engine)
      let otherBatch = try batchBefore ?? plainBatch()
      if round == 0 { continue }
      single.add(ours: one, other: other)
      sameSQL.add(ours: one, other: statements)
      batches.add(ours: batch, other: otherBatch)
      many.add(ours: other, other: sixtyFour)
      if let cipher { beside.add(ours: cipher, other: sixtyFour) }
    }
    try await engine.stop()
    return [single.row, sameSQL.row, batches.row, many.row]
      + (beside.pairs.isEmpty ? [] : [beside.row])
  }

  private static func oneByOne(_ engine: MessagingEngine) async throws -> Cost {
    let message = Message(channel: try Channel("one"), payload: payload)
    return try await Cost.of {
      for _ in 0..<singleCount { try await engine.publish(message) }
    } / Double(singleCount)
  }

  private static func manyAtOnce(_ engine: MessagingEngine) async throws -> Cost {
    let message = Message(channel: try Channel("many"), payload: payload)
    return try await Cost.of {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<publisherCount {
          group.addTask { for _ in 0..<countOfEach { try await engine.publish(message) } }
        }
        try await group.waitForAll()
      }
    } / Double(publisherCount * countOfEach)
  }

  private static func inBatches(_ engine: MessagingEngine) async throws -> Cost {
    let message = Message(channel: try Channel("batches"), payload: payload)
    let batch = Array(repeating: message, count: batchSize)
    return try await Cost.of {
      for _ in 0..<batchCount { try await engine.publish(batch) }
    } / Double(batchCount * batchSize)
  }
}
