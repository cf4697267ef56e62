internal import CoreMetrics
internal import FileLayer
internal import Logging
internal import Synchronization

/// What an engine counts and measures, made once; nil in an engine whose metrics nobody takes.
///
/// Counters and timers follow each commit. The gauges are set by ``DepthGauges``, now and then.
final class EngineMetrics: Sendable {
  let gauges: DepthGauges
  private let counters: [(counter: Counter, count: @Sendable (OperationCounts) -> Int)]
  private let commitVerbs: Recorder
  private let commitWork: Timer
  private let commitSync: Timer

  /// - Returns: nil for the factory that throws everything away, so that nothing is counted for it.
  init?(_ configuration: EngineConfiguration) {
    let factory = configuration.metricsFactory
    if factory is NOOPMetricsHandler { return nil }
    gauges = DepthGauges(factory, configuration.channelMetrics)
    let counts: [(MetricName, @Sendable (OperationCounts) -> Int)] = [
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

  func count(_ tally: OperationCounts) {
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

/// Which channels have gauges of their own, with their names and those of their consumers.
///
/// A name may tell what a channel is about, and each one is a series more in whatever keeps the
/// metrics. So none is named unless it is asked for, and never more than a limit. The gauges over all
/// channels count everything, whatever is chosen here.
public struct ChannelMetrics: Sendable, Hashable {
  enum Choice: Hashable {
    case none
    case only(Set<Channel>)
    case all
  }

  /// The most pairs of channel and consumer, unless said otherwise.
  public static let standardLimit = 100

  let choice: Choice
  let limit: Int

  /// No channel.
  public static let none = ChannelMetrics(choice: .none, limit: 0)

  /// These channels alone, as far as they are within the limit.
  ///
  /// - Parameter limit: the most pairs of channel and consumer; a channel without a consumer counts
  ///   as one. Default: 100.
  public static func only(_ channels: Set<Channel>, limit: Int = standardLimit) -> ChannelMetrics {
    ChannelMetrics(choice: .only(channels), limit: limit)
  }

  /// Every channel, in the order of their names, as far as they are within the limit; how many are
  /// left out is a gauge too.
  ///
  /// - Parameter limit: the most pairs of channel and consumer; a channel without a consumer counts
  ///   as one. Default: 100.
  public static func all(limit: Int = standardLimit) -> ChannelMetrics {
    ChannelMetrics(choice: .all, limit: limit)
  }

  /// Those that have gauges of their own: a channel has all of them or none.
  func named(
    _ channels: [EngineStatistics.ChannelStatistics]
  ) -> [EngineStatistics.ChannelStatistics] {
    var room = limit
    return channels.filter { channel in
      switch choice {
      case .none: return false
      case .only(let chosen): if !chosen.contains(channel.channel) { return false }
      case .all: break
      }
      let size = max(channel.consumers.count, 1)
      if size > room { return false }
      room -= size
      return true
    }
  }
}

/// The names of the engine's metrics; `docs/reference/observation.md` has what they mean.
///
/// One scheme for all: `datavault_`, what is measured, and as the last word its unit, or `total` for a
/// counter. It suits Prometheus, and other systems take it as it is.
enum MetricName: String, CaseIterable {
  // Counters.
  case published = "datavault_messages_published_total"
  case received = "datavault_messages_received_total"
  case redelivered = "datavault_messages_redelivered_total"
  case acknowledged = "datavault_messages_acknowledged_total"
  case released = "datavault_messages_released_total"
  case expired = "datavault_messages_expired_total"
  case deadLettered = "datavault_messages_dead_lettered_total"
  case redriven = "datavault_messages_redriven_total"
  case retired = "datavault_messages_retired_total"
  case purged = "datavault_messages_purged_total"
  case leasesExpired = "datavault_leases_expired_total"

  // A recorder and timers.
  case commitVerbs = "datavault_commit_verbs"
  case commitWork = "datavault_commit_work_seconds"
  case commitSync = "datavault_commit_sync_seconds"

  // Gauges over all channels.
  case logMessages = "datavault_log_messages"
  case logBytes = "datavault_log_bytes"
  case ready = "datavault_ready_messages"
  case leased = "datavault_leased_messages"
  case delayed = "datavault_delayed_messages"
  case waiting = "datavault_waiting_messages"
  case dead = "datavault_dead_messages"
  case oldestAge = "datavault_oldest_age_seconds"
  case unnamedChannels = "datavault_unnamed_channels"

  // Gauges of a channel.
  case channelMessages = "datavault_channel_messages"
  case channelBytes = "datavault_channel_bytes"

  // Gauges of a channel's consumer.
  case consumerReady = "datavault_consumer_ready_messages"
  case consumerLeased = "datavault_consumer_leased_messages"
  case consumerDelayed = "datavault_consumer_delayed_messages"
  case consumerWaiting = "datavault_consumer_waiting_messages"
  case consumerDead = "datavault_consumer_dead_messages"
  case consumerOldestAge = "datavault_consumer_oldest_age_seconds"
}

extension MessagingEngine {
  /// How much longer than a count of what is there the pause behind it is at least: counting a deep
  /// database takes no more than a hundredth of a processor.
  private static let pauseFactor = 100

  /// Sets the gauges at each ``EngineConfiguration/metricsInterval`` for as long as the engine runs, if
  /// anybody takes its metrics.
  nonisolated func beginObservation() {
    guard metrics != nil else { return }
    let interval = configuration.metricsInterval
    let task = Task { [weak self] in
      var pause = Duration.zero
      while (try? await Task.sleep(for: pause)) != nil, let self {
        let start = ContinuousClock.now
        do throws(EngineError) {
          try await self.observe()
        } catch {
          self.configuration.logger.debug("observation: \(error)")
        }
        pause = max(interval, (.now - start) * Self.pauseFactor)
      }
    }
    sampling.withLock { $0 = task }
  }

  /// Counts what is there and sets the gauges; nothing, if nobody takes them.
  package nonisolated func observe() async throws(EngineError) {
    guard let metrics else { return }
    let tables = try running().tables
    metrics.gauges.set(try await log.read(during: "counting") { try tables.statistics($0) })
  }

  /// Ends that, and gives the gauges up.
  nonisolated func endObservation() {
    sampling.withLock { $0.take() }?.cancel()
    metrics?.gauges.retire()
  }
}
