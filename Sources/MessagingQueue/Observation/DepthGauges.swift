internal import CoreMetrics
internal import Synchronization

/// The gauges of a database's contents, set from a count and removed with the engine.
///
/// A gauge of a channel or a consumer is created when it is first set. It is removed when the
/// channel or the consumer no longer exists.
final class DepthGauges: Sendable {
  private struct Key: Hashable {
    let name: MetricName
    var channel: Channel?
    var consumer: Consumer?
  }

  private struct State {
    var gauges: [Key: Gauge] = [:]
    var isRetired = false
  }

  private let factory: any MetricsFactory
  private let choice: ChannelMetrics
  private let state = Mutex(State())

  init(_ factory: any MetricsFactory, _ choice: ChannelMetrics) {
    self.factory = factory
    self.choice = choice
  }

  /// Sets every gauge, and removes those without a value; does nothing after ``retire()``.
  func set(_ statistics: EngineStatistics) {
    let values = values(of: statistics)
    state.withLock { state in
      if state.isRetired { return }
      for key in state.gauges.keys where values[key] == nil {
        state.gauges.removeValue(forKey: key)?.destroy()
      }
      for (key, value) in values {
        let gauge = state.gauges[key] ?? make(key)
        state.gauges[key] = gauge
        gauge.record(value)
      }
    }
  }

  /// Removes all gauges for good, so that a stopped engine does not report an old depth.
  func retire() {
    state.withLock { state in
      state.isRetired = true
      for gauge in state.gauges.values { gauge.destroy() }
      state.gauges = [:]
    }
  }

  private func make(_ key: Key) -> Gauge {
    var dimensions: [(String, String)] = []
    if let channel = key.channel { dimensions.append(("channel", channel.name)) }
    if let consumer = key.consumer { dimensions.append(("consumer", consumer.name)) }
    return Gauge(label: key.name.rawValue, dimensions: dimensions, factory: factory)
  }

  private func values(of statistics: EngineStatistics) -> [Key: Double] {
    let channels = statistics.channels
    let consumers = channels.flatMap(\.consumers)
    let named = choice.named(channels)
    var values: [Key: Double] = [
      Key(name: .logMessages): Double(statistics.messageCount),
      Key(name: .logBytes): channels.reduce(0) { $0 + Double($1.byteCount) },
      Key(name: .unnamedChannels): Double(channels.count - named.count),
    ]
    for figure in Self.figures {
      values[Key(name: figure.total)] = figure.combine(consumers.map(figure.value))
    }
    for channel in named {
      let name = channel.channel
      values[Key(name: .channelMessages, channel: name)] = Double(channel.messageCount)
      values[Key(name: .channelBytes, channel: name)] = Double(channel.byteCount)
      for consumer in channel.consumers {
        for figure in Self.figures {
          let key = Key(name: figure.single, channel: name, consumer: consumer.consumer)
          values[key] = figure.value(consumer)
        }
      }
    }
    return values
  }

  /// A value of one consumer, and how the values of all consumers give the total.
  private struct Figure: Sendable {
    let total: MetricName
    let single: MetricName
    let combine: @Sendable ([Double]) -> Double
    let value: @Sendable (EngineStatistics.ConsumerStatistics) -> Double
  }

  private static let figures = [
    Figure(total: .ready, single: .consumerReady, combine: sum) { Double($0.readyCount) },
    Figure(total: .leased, single: .consumerLeased, combine: sum) { Double($0.leasedCount) },
    Figure(total: .delayed, single: .consumerDelayed, combine: sum) { Double($0.delayedCount) },
    Figure(total: .blocked, single: .consumerBlocked, combine: sum) { Double($0.blockedCount) },
    Figure(total: .dead, single: .consumerDead, combine: sum) { Double($0.deadLetterCount) },
    Figure(total: .oldestAge, single: .consumerOldestAge, combine: greatest) {
      ($0.oldestAge ?? .zero) / .seconds(1)
    },
  ]

  @Sendable private static func sum(_ values: [Double]) -> Double { values.reduce(0, +) }
  @Sendable private static func greatest(_ values: [Double]) -> Double { values.max() ?? 0 }
}
