import CoreMetrics
import MessagingQueue
import MetricsTestKit

/// An engine on a plain file with clocks that stand still, whose metrics the test keeps.
struct ObservedEngine {
  let plain: PlainEngine
  let engine: MessagingEngine
  let metrics = TestMetrics()

  init(_ change: (inout EngineConfiguration) -> Void = { _ in }) async throws {
    plain = try PlainEngine()
    engine = try plain.engine { [metrics] in
      $0.metricsFactory = metrics
      change(&$0)
    }
  }

  @discardableResult
  func publish(_ texts: String..., to channel: Channel) async throws -> [Timetoken] {
    try await engine.publish(texts, to: channel)
  }

  /// The total of a counter.
  func count(_ name: String) -> Int64 {
    metrics.counterTotal(label: "datavault_\(name)_total")
  }

  /// The value of a gauge; nil if the gauge does not exist.
  func gauge(_ name: String, _ dimensions: [(String, String)] = []) -> Double? {
    metrics.recorders(label: "datavault_\(name)", dimensions: dimensions).first?.lastValue
  }
}
