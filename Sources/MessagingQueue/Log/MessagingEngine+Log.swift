internal import GRDB

extension MessagingEngine {
  /// Reads a page of a channel's log, leased messages included, without blocking publishers.
  ///
  /// It reads one snapshot. The timetoken of the last message is the cursor for the next page; an
  /// empty page is the end. A channel without messages gives an empty page.
  ///
  /// - Parameters:
  ///   - order: default: oldest first.
  ///   - cursor: the page begins after this timetoken, or before it when reading back. Default:
  ///     nil, at the oldest or the newest message.
  ///   - maximumCount: default: 100.
  ///   - maximumByteCount: the most bytes of all payloads together; the first message is always
  ///     read. Default: 1 MiB.
  /// - Throws: `invalidArgument`; `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func history(
    of channel: Channel, in order: HistoryOrder = .oldestFirst, from cursor: Timetoken? = nil,
    maximumCount: Int = 100, maximumByteCount: Int = 1 << 20
  ) async throws(EngineError) -> [LogMessage] {
    try await history(
      of: [channel], in: order, from: cursor, maximumCount: maximumCount,
      maximumByteCount: maximumByteCount)
  }

  /// Reads a page of several channels together, in the order of timetokens across all of them.
  ///
  /// - Throws: the errors for a single channel.
  public func history(
    of channels: Set<Channel>, in order: HistoryOrder = .oldestFirst,
    from cursor: Timetoken? = nil, maximumCount: Int = 100, maximumByteCount: Int = 1 << 20
  ) async throws(EngineError) -> [LogMessage] {
    try EngineError.requireArgument(
      maximumCount > 0 && maximumByteCount > 0,
      "the limits of a page are \(maximumCount) messages and \(maximumByteCount) bytes",
      hint: "use at least 1 for each")
    let query = LogQuery(
      channels: channels, order: order, cursor: cursor?.rawValue, maximumCount: maximumCount,
      maximumByteCount: maximumByteCount)
    return try await access.read(during: "reading the log") { db in
      try EngineDatabase.page(query, db).messages
    }
  }

  /// Counts the messages of a channel after a timetoken; nil counts all in the log.
  ///
  /// The time is proportional to the count; only the index is read.
  public func messageCount(
    of channel: Channel, after cursor: Timetoken? = nil
  ) async throws(EngineError) -> Int {
    try await access.read(during: "counting") { db in
      try EngineDatabase.messageCount(of: [channel], after: cursor?.rawValue ?? .min, db)
    }
  }

  /// Counts the messages of a channel after a timetoken, up to a maximum.
  package func messageCount(
    of channel: Channel, after cursor: Timetoken, maximumCount: Int
  ) async throws(EngineError) -> Int {
    try await access.read(during: "counting") { db in
      guard let known = try EngineDatabase.knownChannels([channel], db).first else { return 0 }
      return try Int64.fetchAll(
        db.cachedStatement(sql: EngineDatabase.selectKeysForward),
        arguments: [known.id, cursor.rawValue, Int64.max, maximumCount]
      ).count
    }
  }

  /// Every channel that was published to or has settings, by name, with the contents of its log.
  public func channels() async throws(EngineError) -> [ChannelSummary] {
    try await access.read(during: "listing the channels") {
      try EngineDatabase.channelSummaries($0)
    }
  }

  /// The messages of a channel, from a place in the log on: see ``LogMessages``.
  ///
  /// - Parameters:
  ///   - start: default: messages committed after this call.
  ///   - overflow: default: the sequence skips no message.
  /// - Throws: `invalidArgument` if `start` or `overflow` asks for fewer than one message;
  ///   `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func messages(
    of channel: Channel, after start: LogPosition = .now, overflow: OverflowPolicy = .wait
  ) async throws(EngineError) -> LogMessages {
    try await messages(of: [channel], after: start, overflow: overflow)
  }

  /// The messages of several channels together, in the order of timetokens across all of them.
  ///
  /// - Throws: the errors for a single channel.
  public func messages(
    of channels: Set<Channel>, after start: LogPosition = .now, overflow: OverflowPolicy = .wait
  ) async throws(EngineError) -> LogMessages {
    if let count = overflow.newestCount {
      try EngineError.requireArgument(
        count > 0, "the overflow policy keeps the newest \(count) messages",
        hint: "keep at least 1")
    }
    if case .newest(let count) = start.kind {
      try EngineError.requireArgument(
        count > 0, "the start is the newest \(count) messages", hint: "use at least 1")
    }
    let place = try await access.read(during: "reading the log") { db in
      try EngineDatabase.find(start, in: channels, db)
    }
    return LogMessages(
      access: access, notifier: notifier, channels: channels, start: place, overflow: overflow,
      pageByteCount: configuration.maximumReceiveByteCount)
  }
}

extension MessagingEngine {
  /// Notifications of publications, one for all that come close together: see
  /// ``ChangeNotifications``.
  ///
  /// They begin with this call.
  ///
  /// - Parameters:
  ///   - channels: default: nil, all channels, also those that do not exist yet.
  ///   - delay: how long no publication must come before a notification. Default: 100 ms.
  ///   - maximumLatency: how long after a publication, at most, its notification comes. Default: 1
  ///     second.
  ///   - ignoresOwnChanges: whether publications through this engine are left out. Default: false.
  /// - Throws: `invalidArgument` for a negative delay, or a latency below the delay; `stopped`,
  ///   `vaultLocked`, `damaged`, `inputOutput`.
  public func changes(
    in channels: Set<Channel>? = nil, delay: Duration = .milliseconds(100),
    maximumLatency: Duration = .seconds(1), ignoresOwnChanges: Bool = false
  ) async throws(EngineError) -> ChangeNotifications {
    try EngineError.requireArgument(
      delay >= .zero && maximumLatency >= delay,
      "the delay is \(delay) and the maximum latency is \(maximumLatency)",
      hint: "use a delay of 0 or more, and a latency that is not below it")
    // Before the start is read, so that no publication of this engine comes between the two.
    let ignored = ignoresOwnChanges ? LocalPublicationList(notifier.localPublications) : nil
    let start = try await access.read(during: "reading the log") {
      try EngineDatabase.highWater($0)
    }
    return ChangeNotifications(
      access: access, notifier: notifier, time: tables.time, channels: channels, start: start,
      delay: delay, maximumLatency: maximumLatency, ignored: ignored)
  }
}
