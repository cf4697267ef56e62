internal import GRDB

extension MessagingEngine {
  /// What wakes whoever waits for messages.
  package nonisolated var notifier: ChangeNotifier { log.notifier }

  /// Reads a page of a channel's log, leased or not, without holding up who publishes.
  ///
  /// It reads one snapshot. The timetoken of the last message is the cursor for the next page; an
  /// empty page is the end. A channel that nobody has published to is empty.
  ///
  /// - Parameters:
  ///   - order: oldest first by default.
  ///   - cursor: the page begins with the message after this timetoken, before it when reading
  ///     back; nil begins with the oldest, or the newest.
  ///   - maximumCount: default: 100.
  ///   - maximumByteCount: for the payloads together; the first is always taken. Default: 1 MiB.
  /// - Throws: `invalidArgument`; `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public nonisolated func history(
    of channel: Channel, in order: HistoryOrder = .oldestFirst, from cursor: Timetoken? = nil,
    maximumCount: Int = 100, maximumByteCount: Int = 1 << 20
  ) async throws(EngineError) -> [LogMessage] {
    try await history(
      of: [channel], in: order, from: cursor, maximumCount: maximumCount,
      maximumByteCount: maximumByteCount)
  }

  /// Reads a page of several channels together, in the order of timetokens over all of them.
  ///
  /// - Throws: as the one for a single channel.
  public nonisolated func history(
    of channels: Set<Channel>, in order: HistoryOrder = .oldestFirst,
    from cursor: Timetoken? = nil, maximumCount: Int = 100, maximumByteCount: Int = 1 << 20
  ) async throws(EngineError) -> [LogMessage] {
    let query = LogQuery(
      channels: channels, order: order, cursor: cursor?.rawValue, maximumCount: maximumCount,
      maximumByteCount: maximumByteCount)
    try query.check()
    return try await log.read(during: "reading the log") { db in
      try EngineDatabase.page(query, db).messages
    }
  }

  /// Counts the messages of a channel after a timetoken; nil counts all that the log has.
  ///
  /// It takes time in proportion to the count, and reads the index alone.
  public nonisolated func messageCount(
    of channel: Channel, after cursor: Timetoken? = nil
  ) async throws(EngineError) -> Int {
    try await log.read(during: "counting") { db in
      try EngineDatabase.messageCount(of: [channel], after: cursor?.rawValue ?? .min, db)
    }
  }

  /// Every channel that was ever published to, by name, with what its log holds.
  public nonisolated func channels() async throws(EngineError) -> [ChannelSummary] {
    try await log.read(during: "listing the channels") { try EngineDatabase.channelSummaries($0) }
  }

  /// The messages of a channel, from a place in the log on: see ``LogMessages``.
  ///
  /// - Parameters:
  ///   - start: default: what is published after this call.
  ///   - overflow: default: nothing is passed over.
  /// - Throws: `invalidArgument` for a skip to fewer than one message, or a beginning with fewer; `stopped`, `vaultLocked`,
  ///   `damaged`, `inputOutput`.
  public nonisolated func messages(
    of channel: Channel, after start: LogPosition = .now, overflow: OverflowPolicy = .wait
  ) async throws(EngineError) -> LogMessages {
    try await messages(of: [channel], after: start, overflow: overflow)
  }

  /// The messages of several channels together, in the order of timetokens over all of them.
  ///
  /// - Throws: as the one for a single channel.
  public nonisolated func messages(
    of channels: Set<Channel>, after start: LogPosition = .now, overflow: OverflowPolicy = .wait
  ) async throws(EngineError) -> LogMessages {
    if let count = overflow.newestCount, count < 1 {
      throw EngineError(
        .invalidArgument, "a skip to the newest \(count) messages", hint: "keep at least one")
    }
    if case .newest(let count) = start.kind, count < 1 {
      throw EngineError(
        .invalidArgument, "a beginning with the newest \(count) messages", hint: "at least one")
    }
    let place = try await log.read(during: "reading the log") { db in
      try EngineDatabase.find(start, in: channels, db)
    }
    return LogMessages(
      reader: log, channels: channels, start: place, overflow: overflow,
      pageByteCount: configuration.maximumReceiveByteCount)
  }
}

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
    let ignored = ignoresOwnChanges ? LocalPublicationList(log.notifier.localPublications) : nil
    let start = try await log.read(during: "reading the log") { try EngineDatabase.highWater($0) }
    return ChangeNotifications(
      reader: log, time: tables.time, channels: channels, start: start, delay: delay,
      maximumLatency: maximumLatency, ignored: ignored)
  }
}

/// Reads the log beside the engine's own thread, in snapshots that hold up no writer.
package final class LogReader: Sendable {
  let notifier: ChangeNotifier
  private let snapshots: SnapshotReader
  private let refusal: @Sendable () -> EngineError?

  /// - Parameter refusal: why no work is taken; nil while it is.
  package init(
    _ snapshots: SnapshotReader, notifier: ChangeNotifier,
    refusal: @escaping @Sendable () -> EngineError?
  ) {
    self.snapshots = snapshots
    self.notifier = notifier
    self.refusal = refusal
  }

  /// Runs `body` in one snapshot, on a thread of the pool that may block.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and what reading throws.
  func read<Value: Sendable>(
    during operation: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(EngineError) -> Value {
    if let refusal = refusal() { throw refusal }
    do {
      return try await snapshots.readAside(body)
    } catch {
      // The pool was closed under the read.
      throw refusal() ?? EngineError(translating: error, during: operation)
    }
  }
}
