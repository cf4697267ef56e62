import CoreMetrics
import TestSupport
@testable import MessagingQueue
import FileRecording
import MetricsTestKit
import Testing

@Suite struct DepthGaugeTests {
  private let orders = Channel.orders
  private let audit: Consumer

  init() throws {
    audit = try Consumer("audit")
  }

  @Test func `gauges show the sums over all channels`() async throws {
    let observed = try await ObservedEngine()
    try await observed.engine.addConsumer(audit, of: orders)
    try await observed.publish("a", "b", "c", to: orders)
    try await observed.publish("dd", to: Channel("other"))
    _ = try await observed.engine.receive(from: orders)
    observed.plain.time.advance(by: .seconds(7))
    try await observed.engine.observe()
    #expect(observed.gauge("log_messages") == 4)
    #expect(observed.gauge("log_bytes") == 5)
    // The consumer "default" has one leased message and two ready ones, "audit" has three ready
    // ones.
    #expect(observed.gauge("ready_messages") == 5)
    #expect(observed.gauge("leased_messages") == 1)
    #expect(observed.gauge("oldest_age_seconds") == 7)
    #expect(observed.gauge("unlabelled_channels") == 2)
  }

  @Test func `gauges name no channel and no consumer by default`() async throws {
    let observed = try await ObservedEngine()
    try await observed.publish("a", to: orders)
    _ = try await observed.engine.receive(from: orders, for: audit)
    try await observed.engine.observe()
    #expect(observed.metrics.recorders.count > 5)
    #expect(observed.metrics.recorders.allSatisfy { $0.dimensions.isEmpty })
  }

  @Test func `a selected channel has gauges of its own, by consumer`() async throws {
    let channel = orders
    let observed = try await ObservedEngine { $0.channelMetrics = .only([channel]) }
    try await observed.publish("a", "b", to: orders)
    try await observed.publish("c", to: Channel("other"))
    _ = try await observed.engine.receive(from: orders, for: audit)
    try await observed.engine.observe()
    #expect(observed.gauge("channel_messages", [("channel", "orders")]) == 2)
    #expect(observed.gauge("channel_messages", [("channel", "other")]) == nil)
    let dimensions = [("channel", "orders"), ("consumer", "audit")]
    #expect(observed.gauge("consumer_ready_messages", dimensions) == 1)
    #expect(observed.gauge("consumer_leased_messages", dimensions) == 1)
    #expect(observed.gauge("unlabelled_channels") == 1)
  }

  @Test func `gauges name no more channels than the limit`() async throws {
    let observed = try await ObservedEngine { $0.channelMetrics = .all(limit: 3) }
    for name in ["a", "b", "c", "d", "e"] { try await observed.publish("1", to: Channel(name)) }
    _ = try await observed.engine.receive(from: Channel("b"))
    try await observed.engine.addConsumer(audit, of: Channel("b"))
    try await observed.engine.observe()
    let named = observed.metrics.recorders(label: "datavault_channel_messages")
      .map { $0.dimensions[0].1 }
    #expect(named.sorted() == ["a", "b"])
    #expect(observed.metrics.recorders(label: "datavault_consumer_ready_messages").count == 2)
    #expect(observed.gauge("unlabelled_channels") == 3)
    #expect(observed.gauge("log_messages") == 5)
  }

  @Test func `the gauges of a removed consumer are removed`() async throws {
    let observed = try await ObservedEngine { $0.channelMetrics = .all() }
    try await observed.publish("a", to: orders)
    try await observed.engine.addConsumer(audit, of: orders)
    try await observed.engine.observe()
    #expect(observed.metrics.recorders(label: "datavault_consumer_ready_messages").count == 1)
    try await observed.engine.removeConsumer(audit, of: orders)
    try await observed.engine.observe()
    #expect(observed.metrics.recorders(label: "datavault_consumer_ready_messages").isEmpty)
  }

  @Test func `a stopped engine has no gauges`() async throws {
    let observed = try await ObservedEngine { $0.channelMetrics = .all() }
    try await observed.publish("a", to: orders)
    try await observed.engine.observe()
    try await observed.engine.stop()
    #expect(observed.metrics.recorders.map(\.label) == ["datavault_commit_operations"])
    #expect(observed.count("messages_published") == 1)
  }

  @Test func `an engine sets its gauges as soon as it runs`() async throws {
    let place = EngineHome()
    let metrics = TestMetrics()
    let engine = try await place.start(place.makeVault()) {
      $0.metricsFactory = metrics
      $0.metricsInterval = .seconds(3600)
    }
    try await eventually {
      metrics.recorders(label: "datavault_log_messages").first?.lastValue == 0
    }
    try await engine.stop()
  }

  @Test func `an engine without a metrics backend makes no metrics`() async throws {
    let observed = try await ObservedEngine { $0.metricsFactory = NOOPMetricsHandler.instance }
    try await observed.publish("a", to: orders)
    try await observed.engine.observe()
    #expect(observed.engine.metrics == nil)
    #expect(observed.engine.tables.commitCounter == nil)
  }
}
