import DataVault
import Foundation
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// The workload of litequeue, a queue on a plain file, run by litequeue and by our engine.
///
/// Each worker puts a message, takes one and marks it done. Every step is durable.
enum LiteQueueCost {
  static let name = "put, take, done / litequeue"

  /// - Parameters:
  ///   - python: an interpreter with litequeue.
  ///   - script: `Benchmarks/litequeue_peer.py`.
  static func measure(
    folder: FilePath, python: String, script: String, rounds: Int
  ) async throws -> [ResultRow] {
    let engine = try await MessagingEngine.start(DataVaultHome(folder.appending("sealed")))
    var rows: [ResultRow] = []
    for (workers, count) in [(1, 150), (8, 40)] {
      let what = workers == 1 ? "1 worker" : "\(workers) workers"
      var comparison = Comparison("put, take, done, FULL, \(what) / litequeue", goal: .atMost(1))
      for round in 0...rounds {
        func theirs() throws -> Cost {
          let path = folder.appending("litequeue-\(workers)-\(round).db")
          return try litequeue(python, [script, path.string, "\(workers)", "\(count)"])
        }
        let before = round.isMultiple(of: 2) ? nil : try theirs()
        let ours = try await Cost.of {
          try await work(on: engine, workers: workers, count: count)
        }
        let other = try before ?? theirs()
        if round > 0 { comparison.add(ours: ours, other: other) }
      }
      rows.append(comparison.row)
    }
    try await engine.stop()
    return rows
  }

  private static func work(
    on engine: MessagingEngine, workers: Int, count: Int
  ) async throws {
    let channel = try Channel("benchmark")
    let message = Message(channel: channel, payload: [UInt8](repeating: 0x70, count: 1024))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<workers {
        group.addTask {
          for _ in 0..<count {
            try await engine.publish(message)
            let deliveries = try await engine.receive(from: channel)
            guard deliveries.count == 1 else { throw BenchmarkError("a message is missing") }
            try await engine.acknowledge(deliveries.map(\.token))
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// The times that the script prints.
  ///
  /// They do not include the start of Python.
  private static func litequeue(_ python: String, _ arguments: [String]) throws -> Cost {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let times = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
    guard process.terminationStatus == 0, times.count == 2 else {
      throw BenchmarkError("litequeue failed")
    }
    return Cost(wallSeconds: times[0], processorSeconds: times[1])
  }
}
