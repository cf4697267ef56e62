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
