package import CoreMetrics
internal import Synchronization

/// Keeps metrics in memory and writes them as Prometheus reads them.
///
/// Counters become counters, timers become histograms in seconds, gauges become gauges, and recorders become summaries
/// without quantiles. A metric that is made twice is one series, so that a counter of an engine continues after the
/// vault was locked and unlocked. The number of series is bounded; further ones are not kept, and
/// `datavault_series_dropped_total` counts them.
package final class PrometheusRegistry: MetricsFactory {
  /// What the format is called in `Content-Type`.
  static let contentType = "text/plain; version=0.0.4; charset=utf-8"
  private static let dropped = PrometheusKey("datavault_series_dropped_total", [])

  private struct Entry {
    let series: any PrometheusSeries
    /// How often it was made, minus how often it was destroyed.
    var ownerCount: Int
  }

  private struct Family {
    let type: String
    var entries: [PrometheusKey: Entry] = [:]
  }

  private struct State {
    var families: [String: Family] = [:]
    var seriesCount = 0
    var droppedCount = 0
  }

  private let state = Mutex(State())
  private let maximumSeriesCount: Int
  private let help: [String: String]

  /// Makes an empty registry.
  ///
  /// - Parameters:
  ///   - maximumSeriesCount: the most series. Default: 10,000.
  ///   - help: a sentence for each name that has one. Default: those of the message server.
  package convenience init(maximumSeriesCount: Int = 10_000) {
    self.init(maximumSeriesCount: maximumSeriesCount, help: ServerMetrics.help)
  }

  init(maximumSeriesCount: Int = 10_000, help: [String: String]) {
    self.maximumSeriesCount = maximumSeriesCount
    self.help = help
  }

  /// All metrics, in the order of their names.
  package var text: String {
    let (families, droppedCount) = state.withLock { ($0.families, $0.droppedCount) }
    var text = PrometheusText()
    for (name, family) in families.sorted(by: { $0.key < $1.key }) {
      text.begin(name, type: family.type, help: help[name])
      for (_, entry) in family.entries.sorted(by: { $0.key.labels < $1.key.labels }) {
        entry.series.write(to: &text)
      }
    }
    text.begin(Self.dropped.name, type: CounterSeries.type, help: "Series beyond the limit")
    text.add(Self.dropped, droppedCount)
    return text.text
  }

  // MARK: - MetricsFactory

  /// A counter.
  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    series(CounterSeries.self, label, dimensions) ?? NOOPMetricsHandler.instance
  }

  /// A gauge, or if it aggregates, a summary.
  package func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    if aggregate {
      series(SummarySeries.self, label, dimensions) ?? NOOPMetricsHandler.instance
    } else {
      series(GaugeSeries.self, label, dimensions) ?? NOOPMetricsHandler.instance
    }
  }

  /// A histogram in seconds.
  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    series(HistogramSeries.self, label, dimensions) ?? NOOPMetricsHandler.instance
  }

  /// Ends a counter.
  package func destroyCounter(_ handler: any CounterHandler) { destroy(handler) }
  /// Ends a gauge or a summary.
  package func destroyRecorder(_ handler: any RecorderHandler) { destroy(handler) }
  /// Ends a histogram.
  package func destroyTimer(_ handler: any TimerHandler) { destroy(handler) }

  /// The series of a name and labels; nil if there are too many, or the name is that of a metric of another type.
  private func series<Series: PrometheusSeries>(
    _ type: Series.Type, _ name: String, _ labels: [(String, String)]
  ) -> Series? {
    let key = PrometheusKey(name, labels)
    return state.withLock { state in
      var family = state.families[key.name] ?? Family(type: Series.type)
      if var entry = family.entries[key], let series = entry.series as? Series {
        entry.ownerCount += 1
        family.entries[key] = entry
        state.families[key.name] = family
        return series
      }
      guard family.type == Series.type, state.seriesCount < maximumSeriesCount else {
        state.droppedCount += 1
        return nil
      }
      let series = Series(key)
      family.entries[key] = Entry(series: series, ownerCount: 1)
      state.families[key.name] = family
      state.seriesCount += 1
      return series
    }
  }

  private func destroy(_ handler: AnyObject) {
    guard let key = (handler as? any PrometheusSeries)?.key else { return }
    state.withLock { state in
      guard var family = state.families[key.name], var entry = family.entries[key],
        entry.series === handler
      else { return }
      entry.ownerCount -= 1
      family.entries[key] = entry.ownerCount > 0 ? entry : nil
      if entry.ownerCount == 0 { state.seriesCount -= 1 }
      state.families[key.name] = family.entries.isEmpty ? nil : family
    }
  }
}
