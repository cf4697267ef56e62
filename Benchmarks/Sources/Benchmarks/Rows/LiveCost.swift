import Foundation
import Glibc
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// The time of a message from its commit, when `publish` returns, to its subscriber.
enum LiveCost {
  static let name = "publish to live subscriber, beyond the commit"
  private static let count = 300

  /// - Parameter program: the built `datavault` for the other process; nil omits that row.
  static func measure(program: String?, home: FilePath) async throws -> [ResultRow] {
    let engine = try await MessagingEngine.start(DataVaultHome(home))
    let channel = try Channel("benchmark")
    try await engine.publish(Message(channel: channel, payload: [0]))
    var rows = [
      ResultRow(
        "\(name), same process", Spread(try await sameProcess(engine, channel)), unit: "ms",
        goal: .atMost(1))
    ]
    if let program {
      rows.append(
        ResultRow(
          "\(name), another process",
          Spread(try await anotherProcess(engine, channel, program, home)), unit: "ms",
          goal: .atMost(10)))
    }
    try await engine.stop()
    return rows
  }

  private static func sameProcess(
    _ engine: MessagingEngine, _ channel: Channel
  ) async throws -> [Double] {
    let messages = try await engine.messages(of: channel)
    let (arrivals, arrival) = AsyncStream<ContinuousClock.Instant>.makeStream()
    let subscriber = Task {
      for try await _ in messages { arrival.yield(.now) }
    }
    var iterator = arrivals.makeAsyncIterator()
    let latencies = try await latencies(engine, channel) { await iterator.next() }
    subscriber.cancel()
    try await subscriber.value
    return latencies
  }

  private static func anotherProcess(
    _ engine: MessagingEngine, _ channel: Channel, _ program: String, _ home: FilePath
  ) async throws -> [Double] {
    let output = Pipe()
    let follower = Process()
    follower.executableURL = URL(fileURLWithPath: program)
    follower.arguments = [
      "queue", "history", channel.name, "--newest", "--limit", "1", "--follow",
      "--home", home.string,
    ]
    follower.standardOutput = output
    follower.standardError = FileHandle.nullDevice
    try follower.run()
    defer { follower.terminate() }
    let descriptor = output.fileHandleForReading.fileDescriptor
    // The message that exists already. After it, the process follows the log.
    guard line(descriptor) != nil else { throw BenchmarkError("\(program) cannot follow") }
    return try await latencies(engine, channel) { line(descriptor) }
  }

  /// Publishes one message at a time and waits until it arrives.
  private static func latencies(
    _ engine: MessagingEngine, _ channel: Channel,
    _ arrival: () async -> ContinuousClock.Instant?
  ) async throws -> [Double] {
    var latencies: [Double] = []
    for _ in 0..<count {
      // Long enough for the subscriber to start waiting again.
      try await Task.sleep(for: .milliseconds(2))
      try await engine.publish(Message(channel: channel, payload: Array("message".utf8)))
      let committed = ContinuousClock.now
      guard let arrived = await arrival() else { throw BenchmarkError("a message is missing") }
      latencies.append(max(0, (arrived - committed) / .milliseconds(1)))
    }
    return latencies
  }

  /// Waits for the line of a message and returns its arrival time.
  private static func line(_ descriptor: Int32) -> ContinuousClock.Instant? {
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = read(descriptor, &buffer, buffer.count)
    return count > 0 ? .now : nil
  }
}
