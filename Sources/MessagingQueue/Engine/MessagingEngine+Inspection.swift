internal import GRDB

/// Single messages: what becomes of them, and how to take them out.
extension MessagingEngine {
  /// A message of a channel with its state for each consumer; nil if the log does not have it.
  ///
  /// It reads one snapshot and blocks no one.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func state(
    of timetoken: Timetoken, in channel: Channel
  ) async throws(EngineError) -> MessageState? {
    try await access.read(during: "looking at a message") { [tables] db in
      try tables.state(of: timetoken, in: channel, db)
    }
  }

  /// The messages that a receive would return now, without leasing them.
  ///
  /// It receives in a transaction that is rolled back, and so takes its turn among the writers.
  ///
  /// - Parameters:
  ///   - consumer: default: `default`; it need not exist.
  ///   - maximumCount: at least 1. Default: 1.
  /// - Returns: deliveries whose tokens settle nothing; their attempt is the one that a receive would count.
  /// - Throws: the errors of ``receive(from:for:maximumCount:lease:)``.
  public func peek(
    at channel: Channel, for consumer: Consumer = .default, maximumCount: Int = 1
  ) async throws(EngineError) -> [Delivery] {
    struct Peeked: Error { let deliveries: [Delivery] }
    do {
      try await write { db in
        throw Peeked(
          deliveries: try self.receive(
            from: channel, for: consumer, maximumCount: maximumCount, in: db))
      }
      return []
    } catch let peeked as Peeked {
      return peeked.deliveries
    } catch let error as EngineError {
      throw error
    } catch {
      throw EngineError(translating: error, during: "peeking")
    }
  }

  /// Takes messages out of the log, and from every consumer that has not settled them.
  ///
  /// They are ready, delayed or waiting for their ordering key. A message that a consumer has leased, or among its dead
  /// letters, stays. On a home that is one of several, a leased one is removed too.
  ///
  /// - Returns: the messages that stay, and those that the log does not have; all others are removed, durably.
  /// - Throws: `busy`, `diskFull`, `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  @discardableResult
  public func cancel(
    _ timetokens: [Timetoken], of channel: Channel
  ) async throws(EngineError) -> [Timetoken] {
    var cancelled = Set(try await perform(.cancel(timetokens, of: channel)).passed)
    return timetokens.filter { cancelled.remove($0.rawValue) == nil }
  }

  /// Publishes a consumer's dead letters to another channel, and removes them.
  ///
  /// The messages keep content, headers, priority and ordering key, and get new timetokens. Each step of 100 is one
  /// transaction: a kill leaves no dead letter twice and none behind. On a home that is one of several, a kill can leave
  /// messages in both channels; called again within an hour, it adds no message twice.
  ///
  /// - Parameter timetokens: the dead letters to move. Default: nil, all.
  /// - Returns: how many were moved.
  /// - Throws: the errors of ``publish(_:)-([Message])``; what was moved before stays moved.
  @discardableResult
  public func moveDeadLetters(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default,
    to target: Channel
  ) async throws(EngineError) -> Int {
    let atOnce = 100
    var total = 0
    var rest = timetokens.map { $0[...] }
    while true {
      let chosen = rest.map { Array($0.prefix(atOnce)) }
      if chosen?.isEmpty == true { return total }
      rest = rest?.dropFirst(atOnce)
      let count =
        isReplicated
        ? try await republish(chosen, of: channel, for: consumer, to: target, atOnce)
        : try await move(chosen, of: channel, for: consumer, to: target, atOnce)
      total += count
      if chosen == nil, count < atOnce { return total }
    }
  }

  /// Publishes dead letters through the log, then removes them.
  ///
  /// Their deduplication ids make a repetition harmless after an end of the process between both.
  private func republish(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer, to target: Channel,
    _ maximumCount: Int
  ) async throws(EngineError) -> Int {
    let letters = try await access.read(during: "moving dead letters") { [tables] db in
      try tables.copiesOfDeadLetters(
        timetokens, of: channel, for: consumer, to: target, maximumCount: maximumCount, db)
    }
    if letters.isEmpty { return 0 }
    try await publish(letters.map(\.copy))
    return try await removeDeadLetters(letters.map(\.timetoken), of: channel, for: consumer)
  }

  private func move(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer, to target: Channel,
    _ maximumCount: Int
  ) async throws(EngineError) -> Int {
    do {
      return try await write { db in
        try self.join(db, during: "moving dead letters") { tables, publication in
          try tables.moveDeadLetters(
            timetokens, of: channel, for: consumer, to: target, maximumCount: maximumCount,
            in: &publication, db)
        }
      }
    } catch let error as EngineError {
      throw error
    } catch {
      throw EngineError(translating: error, during: "moving dead letters")
    }
  }
}
