internal import CoreMetrics
internal import FileLayer

/// What an engine counts and measures, made once; nil in an engine whose metrics nobody takes.
///
/// Counters and timers follow each commit. The gauges are set by ``DepthGauges``, now and then.
final class EngineMetrics: Sendable {
  let gauges: DepthGauges
  private let counters: [(counter: Counter, count: @Sendable (Tally) -> Int)]
  private let commitVerbs: Recorder
  private let commitWork: Timer
  private let commitSync: Timer

  /// - Returns: nil for the factory that throws everything away, so that nothing is counted for it.
  init?(_ configuration: EngineConfiguration) {
    let factory = configuration.metricsFactory
    if factory is NOOPMetricsHandler { return nil }
    gauges = DepthGauges(factory, configuration.channelMetrics)
    let counts: [(MetricName, @Sendable (Tally) -> Int)] = [
      (.published, { $0.published }), (.received, { $0.received }),
      (.redelivered, { $0.redelivered }), (.acknowledged, { $0.acknowledged }),
      (.released, { $0.released }), (.expired, { $0.expired }),
      (.deadLettered, { $0.deadLettered }), (.redriven, { $0.redriven }),
      (.retired, { $0.retired }), (.purged, { $0.purged }),
      (.leasesExpired, { $0.leasesExpired }),
    ]
    counters = counts.map { (Counter(label: $0.rawValue, factory: factory), $1) }
    commitVerbs = Recorder(label: MetricName.commitVerbs.rawValue, factory: factory)
    commitWork = Timer(
      label: MetricName.commitWork.rawValue, preferredDisplayUnit: .seconds, factory: factory)
    commitSync = Timer(
      label: MetricName.commitSync.rawValue, preferredDisplayUnit: .seconds, factory: factory)
  }

  func count(_ tally: Tally) {
    for (counter, count) in counters {
      let number = count(tally)
      if number > 0 { counter.increment(by: number) }
    }
  }

  func record(_ report: CommitReport) {
    commitVerbs.record(report.verbCount)
    commitWork.recordNanoseconds(report.workTime.wholeNanoseconds)
    commitSync.recordNanoseconds(report.commitTime.wholeNanoseconds)
  }
}
