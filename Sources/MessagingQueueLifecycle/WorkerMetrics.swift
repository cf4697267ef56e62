internal import CoreMetrics
internal import MessagingQueue

/// The metrics of a ``WorkerService``; nil if no backend takes them.
final class WorkerMetrics: Sendable {
  /// The names; `docs/reference/observation.md` has their meanings.
  enum Name: String, CaseIterable {
    case jobs = "datavault_jobs_total"
    case channelJobs = "datavault_channel_jobs_total"
    case jobTime = "datavault_job_seconds"
  }

  /// The ends of a job.
  enum Result: String, CaseIterable, Sendable {
    case acknowledged, retried, rejected
    /// The last attempt failed.
    case exhausted
    /// Released by a shutdown.
    case released
    /// Its lease went to another worker.
    case lost
    /// The vault was locked or the engine stopped before it was settled.
    case unsettled
  }

  private let totals: [Result: Counter]
  private let channels: [Channel: [Result: Counter]]
  private let jobTime: Timer

  init?(_ configuration: WorkerConfiguration, _ workers: [Worker]) {
    let factory = configuration.metricsFactory
    if factory is NOOPMetricsHandler { return nil }
    func counters(_ name: Name, _ dimensions: [(String, String)]) -> [Result: Counter] {
      Dictionary(
        uniqueKeysWithValues: Result.allCases.map { result in
          let labels = dimensions + [("result", result.rawValue)]
          return (result, Counter(label: name.rawValue, dimensions: labels, factory: factory))
        })
    }
    totals = counters(.jobs, [])
    let named = configuration.channelMetrics.named(Array(Set(workers.map(\.channel))))
    channels = Dictionary(
      uniqueKeysWithValues: named.map { ($0, counters(.channelJobs, [("channel", $0.name)])) })
    jobTime = Timer(
      label: Name.jobTime.rawValue, preferredDisplayUnit: .seconds, factory: factory)
  }

  func record(_ result: Result, of channel: Channel, after time: Duration) {
    totals[result]?.increment()
    channels[channel]?[result]?.increment()
    let (seconds, attoseconds) = time.components
    jobTime.recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
