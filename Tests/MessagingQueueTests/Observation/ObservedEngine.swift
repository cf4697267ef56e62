import CoreMetrics
import FileLayer
import MessagingQueue
import MetricsTestKit

/// An engine on a plain file with clocks that stand still, whose metrics are kept for the test.
struct ObservedEngine {
  let plain: PlainEngine
  let engine: MessagingEngine
  let metrics = TestMetrics()

  init(_ change: (inout EngineConfiguration) -> Void = { _ in }) async throws {
    plain = try PlainEngine()
    var configuration = EngineConfiguration()
    configuration.metricsFactory = metrics
    change(&configuration)
    engine = try await MessagingEngine(
      pool: plain.pool, time: plain.time, configuration: configuration, isSecured: true)
  }

  @discardableResult
  func publish(_ texts: String..., to channel: Channel) async throws -> [Timetoken] {
    try await engine.publish(texts.map { Message(channel: channel, payload: Array($0.utf8)) })
  }

  /// What a counter has come to.
  func count(_ name: String) -> Int64 {
    metrics.counterTotal(label: "datavault_\(name)_total")
  }

  /// What a gauge shows; nil if it is not there.
  func gauge(_ name: String, _ dimensions: [(String, String)] = []) -> Double? {
    metrics.recorders(label: "datavault_\(name)", dimensions: dimensions).first?.lastValue
  }
}
