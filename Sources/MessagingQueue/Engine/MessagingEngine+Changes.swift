extension MessagingEngine {
  /// Tells when something is published, once for all that comes close together: see
  /// ``ChangeNotifications``.
  ///
  /// It counts from this call on.
  ///
  /// - Parameters:
  ///   - channels: nil, the default, for all, also those that are not there yet.
  ///   - delay: how long it has to be quiet before it tells. Default: 100 ms.
  ///   - maximumLatency: how long a publication waits at most. Default: 1 second.
  ///   - ignoresOwnChanges: whether publications through this engine are left out. Default: false.
  /// - Throws: `invalidArgument` for a negative delay, or a latency below the delay; `stopped`,
  ///   `vaultLocked`, `damaged`, `inputOutput`.
  public nonisolated func changes(
    in channels: Set<Channel>? = nil, delay: Duration = .milliseconds(100),
    maximumLatency: Duration = .seconds(1), ignoresOwnChanges: Bool = false
  ) async throws(EngineError) -> ChangeNotifications {
    guard delay >= .zero, maximumLatency >= delay else {
      throw EngineError(
        .invalidArgument, "a delay of \(delay) with a maximum latency of \(maximumLatency)",
        hint: "the latency is at least the delay, and neither is negative")
    }
    // Before the place is taken, so that no own change is between the two.
    let ignored = ignoresOwnChanges ? OwnChangeList(log.bell.ownChanges) : nil
    let start = try await log.read(during: "reading the log") { try EngineDatabase.highWater($0) }
    return ChangeNotifications(
      reader: log, time: tables.time, channels: channels, start: start, delay: delay,
      maximumLatency: maximumLatency, ignored: ignored)
  }
}
