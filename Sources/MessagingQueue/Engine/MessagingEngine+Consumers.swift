internal import GRDB

extension MessagingEngine {
  /// Adds a consumer that begins with the oldest message of a channel, or changes its limit of
  /// attempts.
  ///
  /// Without this call, the first receive adds the consumer, without a limit. Messages published
  /// before a consumer exists reach it as long as the log still has them.
  ///
  /// - Parameter maximumAttempts: how often the consumer gets a message before it becomes a dead
  ///   letter; 1 to 999,999,999. Default: nil, no limit.
  /// - Throws: `invalidArgument`, `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`.
  public func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int? = nil
  ) async throws(EngineError) {
    _ = try await perform(.addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts))
  }

  /// Whether a channel has a consumer, for a server that asks a right of who adds one.
  package func hasConsumer(
    _ consumer: Consumer, of channel: Channel
  ) async throws(EngineError) -> Bool {
    try await access.read(during: "looking for a consumer") { db in
      try ConsumerRecord.find(consumer, of: channel, db) != nil
    }
  }

  /// The consumers of a channel, by their names; none if the channel does not exist.
  package func consumers(of channel: Channel) async throws(EngineError) -> [Consumer] {
    try await access.read(during: "listing consumers") { db in
      try ConsumerRecord.names(of: channel, db)
    }
  }

  /// Removes a consumer, its deliveries and its dead letters.
  ///
  /// The log then drops the messages that no other consumer needs, unless the channel keeps them.
  /// After the channel's last consumer is removed, the log drops none.
  ///
  /// - Returns: whether the consumer existed.
  @discardableResult
  public func removeConsumer(
    _ consumer: Consumer, of channel: Channel
  ) async throws(EngineError) -> Bool {
    try await perform(.removeConsumer(consumer, of: channel)).count == 1
  }

  /// A consumer's dead letters in the order of the log, at most `maximumCount` of them.
  ///
  /// - Parameter timetoken: the list begins after this place. Default: nil, with the oldest.
  public func deadLetters(
    of channel: Channel, for consumer: Consumer = .default, after timetoken: Timetoken? = nil,
    maximumCount: Int = 100
  ) async throws(EngineError) -> [DeadLetter] {
    try await access.read(during: "reading dead letters") { [tables] db in
      try tables.deadLetters(
        of: channel, for: consumer, after: timetoken, maximumCount: maximumCount, in: db)
    }
  }

  /// Returns dead letters to their consumer: ready immediately, with no attempts counted and their
  /// history kept.
  ///
  /// - Parameter timetokens: the dead letters to return. Default: nil, all.
  /// - Returns: how many were returned.
  @discardableResult
  public func redrive(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    Int(try await perform(.redrive(timetokens, of: channel, for: consumer)).count)
  }

  /// Removes dead letters for good.
  ///
  /// - Parameter timetokens: the dead letters to remove. Default: nil, all.
  /// - Returns: how many were removed.
  @discardableResult
  public func removeDeadLetters(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    Int(try await perform(.removeDeadLetters(timetokens, of: channel, for: consumer)).count)
  }
}
