extension MessagingEngine {
  /// Makes a consumer that begins with the oldest message of a channel, or changes how often one that
  /// is there gets a message before it becomes a dead letter.
  ///
  /// Without this a consumer is made by its first receive, and gets a message until it is
  /// acknowledged. Messages that are published before a consumer exists reach it as long as the log
  /// still has them.
  ///
  /// - Parameter maximumAttempts: at least 1; nil, the default, for no limit.
  /// - Throws: `invalidArgument`, `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`.
  public nonisolated func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int? = nil
  ) async throws(EngineError) {
    try await running().addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts)
  }

  /// Forgets a consumer, its deliveries and its dead letters.
  ///
  /// What no other consumer needs leaves the log, unless the channel keeps it; after the last
  /// consumer nothing does.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  public nonisolated func removeConsumer(
    _ consumer: Consumer, of channel: Channel
  ) async throws(EngineError) -> Bool {
    try await running().removeConsumer(consumer, of: channel)
  }

  /// A consumer's dead letters in the order of the log, at most `maximumCount` of them, from the one
  /// after `timetoken` on.
  public func deadLetters(
    of channel: Channel, for consumer: Consumer = .default, after timetoken: Timetoken? = nil,
    maximumCount: Int = 100
  ) throws(EngineError) -> [DeadLetter] {
    let tables = try running().tables
    return try tables.read(during: "reading dead letters") { db in
      try tables.deadLetters(
        of: channel, for: consumer, after: timetoken, maximumCount: maximumCount, in: db)
    }
  }

  /// Gives dead letters back to their consumer: ready at once, as if never tried, with their history.
  ///
  /// - Parameter timetokens: which; nil for all.
  /// - Returns: How many there were.
  @discardableResult
  public nonisolated func redrive(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    try await running().redrive(timetokens, of: channel, for: consumer)
  }

  /// Removes dead letters for good.
  ///
  /// - Parameter timetokens: which; nil for all.
  /// - Returns: How many there were.
  @discardableResult
  public nonisolated func removeDeadLetters(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    try await running().removeDeadLetters(timetokens, of: channel, for: consumer)
  }
}
