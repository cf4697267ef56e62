internal import CoreMetrics
internal import FileLayer
internal import Logging
internal import Synchronization

/// The metrics of an engine, made once; nil if no backend takes them.
///
/// Counters and timers follow each commit. ``DepthGauges`` sets the gauges from time to time.
final class EngineMetrics: Sendable {
  let gauges: DepthGauges
  private let counters: [(counter: Counter, count: @Sendable (OperationCounts) -> Int)]
  private let commitOperations: Recorder
  private let commitWork: Timer
  private let commitSync: Timer

  /// - Returns: nil for the factory that discards everything, so that nothing is counted for it.
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
    commitOperations = Recorder(label: MetricName.commitOperations.rawValue, factory: factory)
    commitWork = Timer(
      label: MetricName.commitWork.rawValue, preferredDisplayUnit: .seconds, factory: factory)
    commitSync = Timer(
      label: MetricName.commitSync.rawValue, preferredDisplayUnit: .seconds, factory: factory)
  }

  func count(_ counts: OperationCounts) {
    for (counter, count) in counters {
      let number = count(counts)
      if number > 0 { counter.increment(by: number) }
    }
  }

  func record(_ report: CommitReport) {
    commitOperations.record(report.operationCount)
    commitWork.recordNanoseconds(report.workTime.wholeNanoseconds)
    commitSync.recordNanoseconds(report.commitTime.wholeNanoseconds)
  }
}

/// Which channels have gauges of their own, labelled with their names and those of their consumers.
///
/// A name can reveal what a channel is for, and each one adds a series to the metrics backend. So
/// no channel is named by default, and never more than a limit. The gauges over all channels count
/// everything, whatever is chosen here.
public struct ChannelMetrics: Sendable, Hashable {
  /// Nil for every channel.
  let channels: Set<Channel>?
  let limit: Int

  /// No channel.
  public static let none = ChannelMetrics(channels: [], limit: 0)

  /// These channels, as far as the limit allows.
  ///
  /// - Parameter limit: the most pairs of channel and consumer; a channel without consumers counts
  ///   as one. Default: 100.
  public static func only(_ channels: Set<Channel>, limit: Int = 100) -> ChannelMetrics {
    ChannelMetrics(channels: channels, limit: limit)
  }

  /// Every channel, in the order of their names, as far as the limit allows.
  ///
  /// A gauge counts the channels that are left out.
  ///
  /// - Parameter limit: the most pairs of channel and consumer; a channel without consumers counts
  ///   as one. Default: 100.
  public static func all(limit: Int = 100) -> ChannelMetrics {
    ChannelMetrics(channels: nil, limit: limit)
  }

  /// The channels of these that have metrics of their own; each counts once towards the limit.
  package func named(_ channels: [Channel]) -> Set<Channel> {
    let chosen = channels.filter { self.channels?.contains($0) ?? true }
    return Set(chosen.sorted { $0.name < $1.name }.prefix(limit))
  }

  /// The channels that have gauges of their own; a channel has all its gauges or none.
  func named(
    _ statistics: [EngineStatistics.ChannelStatistics]
  ) -> [EngineStatistics.ChannelStatistics] {
    var room = limit
    return statistics.filter { channel in
      if let channels, !channels.contains(channel.channel) { return false }
      let size = max(channel.consumers.count, 1)
      if size > room { return false }
      room -= size
      return true
    }
  }
}

/// The names of the engine's metrics; `docs/reference/observation.md` has their meanings.
///
/// The scheme is `datavault_`, what is measured, and as the last word its unit, or `total` for a
/// counter. It suits Prometheus and works in other systems.
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
  case retired = "datavault_messages_removed_by_retention_total"
  case purged = "datavault_messages_purged_total"
  case leasesExpired = "datavault_leases_expired_total"

  // A recorder and timers.
  case commitOperations = "datavault_commit_operations"
  case commitWork = "datavault_commit_work_seconds"
  case commitSync = "datavault_commit_sync_seconds"

  // Gauges over all channels.
  case logMessages = "datavault_log_messages"
  case logBytes = "datavault_log_bytes"
  case ready = "datavault_ready_messages"
  case leased = "datavault_leased_messages"
  case delayed = "datavault_delayed_messages"
  case blocked = "datavault_blocked_messages"
  case dead = "datavault_dead_letters"
  case oldestAge = "datavault_oldest_age_seconds"
  case unnamedChannels = "datavault_unlabelled_channels"

  // Gauges of a channel.
  case channelMessages = "datavault_channel_messages"
  case channelBytes = "datavault_channel_bytes"

  // Gauges of a channel's consumer.
  case consumerReady = "datavault_consumer_ready_messages"
  case consumerLeased = "datavault_consumer_leased_messages"
  case consumerDelayed = "datavault_consumer_delayed_messages"
  case consumerBlocked = "datavault_consumer_blocked_messages"
  case consumerDead = "datavault_consumer_dead_letters"
  case consumerOldestAge = "datavault_consumer_oldest_age_seconds"
}

extension MessagingEngine {
  /// The pause after a count, as a multiple of its duration: counting a deep database takes at most
  /// a hundredth of a processor.
  private static let pauseFactor = 100

  /// Sets the gauges at each ``EngineConfiguration/metricsInterval`` while the engine runs, if a
  /// backend takes its metrics.
  func beginObservation() {
    guard metrics != nil else { return }
    let interval = configuration.metricsInterval
    let task = Task { [weak self, stateStore] in
      // While the engine starts, a count is refused, and the next one would come an interval later.
      _ = await stateStore.states.first { $0 != .starting }
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

  /// Counts the contents and sets the gauges; does nothing if no backend takes them.
  package func observe() async throws(EngineError) {
    guard let metrics else { return }
    metrics.gauges.set(try await statistics())
  }

  /// Stops setting the gauges, and removes them.
  func endObservation() {
    sampling.withLock { $0.take() }?.cancel()
    metrics?.gauges.retire()
  }
}
