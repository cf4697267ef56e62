import DataVault
import Foundation
import GRDB
import MessagingQueue
import MetricsTestKit
import Synchronization
import Testing

/// A text in every part of a message that no log, metric or error must contain.
private let canary = "canary-7f3a"

@Suite struct ObservationSecrecyTests {
  private let place = EngineHome()
  private let log = RecordingLog()
  private let metrics = TestMetrics()
  private let errors = Errors()

  private final class Errors: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }
    func append(_ text: String) { texts.withLock { $0.append(text) } }
  }

  /// Runs a call that must fail, and keeps the texts of its error.
  private func failing(_ body: () async throws -> Void) async {
    do {
      try await body()
      Issue.record("nothing failed")
    } catch {
      errors.append("\(error) \(String(reflecting: error))")
      if let error = error as? EngineError, let cause = error.underlying {
        errors.append("\(cause) \(String(reflecting: cause))")
      }
    }
  }

  private func message(_ channel: Channel) -> Message {
    var message = Message(
      channel: channel, payload: Array("\(canary) payload".utf8),
      headers: ["\(canary) name": "\(canary) value"])
    message.orderingKey = "\(canary) key"
    message.deduplicationID = "\(canary) \(UUID())"
    return message
  }

  @Test func `logs, metrics and errors contain nothing of a message`()
    async throws
  {
    let vault = try await place.makeVault()
    let engine = try await start(vault)
    let channel = try Channel("\(canary) channel")
    let consumer = try Consumer("\(canary) consumer")
    try await useAll(of: engine, channel, consumer)
    await refuseAll(by: engine, channel)
    await breakTables(of: engine, channel)
    try await engine.observe()
    let labels = (metrics.counters.map(\.label) + metrics.timers.map(\.label))
    let dimensions = metrics.recorders.map { "\($0.label) \($0.dimensions)" }
    await vault.lock()
    await failing { try await engine.publish(message(channel)) }
    await failing { _ = try await start(vault).stop() }

    #expect(log.messages.count >= 5)
    #expect(labels.count > 10 && dimensions.count > 5)
    for text in log.messages + labels + dimensions + errors.all {
      #expect(!text.contains(canary), "\(text)")
      #expect(!text.contains(Data(canary.utf8).base64EncodedString()))
    }
  }

  private func start(_ vault: Vault) async throws -> MessagingEngine {
    try await place.start(vault) {
      $0.logger = log.logger
      $0.metricsFactory = metrics
      $0.maximumPayloadByteCount = 1000
      $0.maximumHeaderByteCount = 1000
      $0.anchorCommitCount = 2
      $0.maintenanceInterval = .milliseconds(1)
      $0.metricsInterval = .milliseconds(1)
    }
  }

  private func useAll(
    of engine: MessagingEngine, _ channel: Channel, _ consumer: Consumer
  ) async throws {
    let reason = "\(canary) reason"
    try await engine.addConsumer(consumer, of: channel, maximumAttempts: 2)
    var free = message(channel)
    free.orderingKey = nil
    free.deduplicationID = nil
    try await engine.publish([message(channel), message(channel), free, free, free])
    try await engine.write { db in _ = try engine.publish(message(channel), in: db) }
    let deliveries = try await engine.receive(from: channel, for: consumer, maximumCount: 9)
    #expect(deliveries.count == 4)
    let tokens = deliveries.map(\.token)
    try await engine.extend(tokens, by: .seconds(60))
    try await engine.acknowledge([tokens[0]])
    try await engine.release([tokens[1]], after: .seconds(1), reason: reason)
    try await engine.reject([tokens[2]], reason: reason)
    #expect(try await engine.deadLetters(of: channel, for: consumer).count == 1)
    try await engine.redrive(of: channel, for: consumer)
    _ = try await engine.history(of: channel)
    _ = try await engine.messages(of: channel)
    _ = try await engine.changes(in: [channel])
    _ = try await engine.statistics()
    try await engine.setRetention(Retention(), of: channel)
    try await engine.maintain()
    await failing { try await engine.acknowledge([tokens[0]]) }
    try await engine.compact()
  }

  private func refuseAll(by engine: MessagingEngine, _ channel: Channel) async {
    func refuse(_ change: (inout Message) -> Void) async {
      var message = message(channel)
      change(&message)
      await failing { try await engine.publish(message) }
    }
    await refuse { $0.payload += Array(repeating: 0, count: 1000) }
    await refuse { $0.headers[canary] = String(repeating: canary, count: 100) }
    await refuse { $0.headers["\(canary)\n"] = "" }
    await refuse { $0.orderingKey = "\(canary)\n" }
    await refuse { $0.deduplicationID = "\(canary)\n" }
    await refuse { $0.priority = (try? Priority(9)) ?? .normal }
    await refuse { $0.timeToLive = .zero }
    await refuse { $0.availability = .after(.seconds(-1)) }
    await failing { _ = try Channel("\(canary)\n") }
    await failing { _ = try Consumer("\(canary)\n") }
    await failing {
      try await engine.release([], after: .seconds(-1), reason: canary)
    }
    await failing { try await engine.reject([], reason: String(repeating: canary, count: 200)) }
    await failing { _ = try await engine.receive(from: channel, maximumCount: 0) }
  }

  /// Causes errors of SQLite, for which GRDB quotes the statement and its arguments.
  private func breakTables(of engine: MessagingEngine, _ channel: Channel) async {
    await failing {
      try await engine.write { db in
        try db.execute(
          sql: """
            CREATE TEMP TRIGGER refusal BEFORE INSERT ON main.message
            BEGIN SELECT raise(ABORT, 'refused'); END
            """)
      }
      try await engine.publish(message(channel))
    }
    await failing { try await engine.publish([message(channel), message(channel)]) }
  }
}
