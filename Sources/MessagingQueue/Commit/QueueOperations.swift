internal import GRDB

/// The engine's operations on messages.
///
/// Each operation is a function of a transaction and runs through ``CommitQueue``, where callers
/// that wait at the same time share a commit. An operation checks its arguments before it waits.
/// ``MessagingEngine`` has the same operations while it runs, and documents their promises and
/// errors. Only `EngineDatabase.publish(_:in:)` runs in a caller's transaction.
package struct QueueOperations: Sendable {
  package let tables: EngineDatabase
  package let commits: CommitQueue

  /// - Parameter didCommit: called after every commit that changed something, before its callers
  ///   resume.
  package init(
    _ tables: EngineDatabase, didCommit: @escaping @Sendable (CommitReport) -> Void = { _ in }
  ) {
    self.tables = tables
    commits = CommitQueue(tables.pool, didCommit: didCommit)
  }

  package func publish(_ messages: [Message]) async throws(EngineError) -> [Timetoken] {
    try tables.check(messages)
    if messages.isEmpty { return [] }
    return try await commits.publish(messages, on: tables)
  }

  /// Receives without waiting, in several transactions while the log has more messages to pass.
  package func receive(
    from channel: Channel, for consumer: Consumer, maximumCount: Int, lease: Duration
  ) async throws(EngineError) -> [Delivery] {
    try EngineDatabase.check(maximumCount: maximumCount)
    try EngineDatabase.check(lease: lease)
    while true {
      let reception = try await commits.run(during: "receiving") { [tables] db in
        try tables.receive(
          from: channel, for: consumer, maximumCount: maximumCount, lease: lease, in: db)
      }
      if !reception.stoppedEarly { return reception.deliveries }
    }
  }

  // MARK: Settling deliveries

  package func acknowledge(_ tokens: [LeaseToken]) async throws(EngineError) {
    try await settle(tokens, during: "acknowledging") { [tables] db in
      try tables.acknowledge(tokens, in: db)
    }
  }

  package func release(
    _ tokens: [LeaseToken], after delay: Duration, reason: String?
  ) async throws(EngineError) {
    try EngineDatabase.check(delay: delay)
    if let reason { try EngineDatabase.check(reason: reason) }
    try await settle(tokens, during: "releasing") { [tables] db in
      try tables.release(tokens, after: delay, reason: reason, in: db)
    }
  }

  package func reject(_ tokens: [LeaseToken], reason: String) async throws(EngineError) {
    try EngineDatabase.check(reason: reason)
    try await settle(tokens, during: "rejecting") { [tables] db in
      try tables.reject(tokens, reason: reason, in: db)
    }
  }

  package func extend(_ tokens: [LeaseToken], by lease: Duration) async throws(EngineError) {
    try EngineDatabase.check(lease: lease)
    try await settle(tokens, during: "extending") { [tables] db in
      try tables.extend(tokens, by: lease, in: db)
    }
  }

  /// - Throws: `unknownLease` if tokens settle nothing; all others are settled.
  private func settle(
    _ tokens: [LeaseToken], during operation: String,
    _ write: @escaping @Sendable (Database) throws -> [LeaseToken]
  ) async throws(EngineError) {
    if tokens.isEmpty { return }
    let unknown = try await commits.run(during: operation, write)
    try EngineDatabase.require(unknown, of: tokens, during: operation)
  }

  // MARK: Consumers and dead letters

  package func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int?
  ) async throws(EngineError) {
    try await commits.run(during: "adding a consumer") { [tables] db in
      try tables.addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts, in: db)
    }
  }

  package func removeConsumer(
    _ consumer: Consumer, of channel: Channel
  ) async throws(EngineError) -> Bool {
    try await commits.run(during: "removing a consumer") { [tables] db in
      try tables.removeConsumer(consumer, of: channel, in: db)
    }
  }

  package func redrive(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer
  ) async throws(EngineError) -> Int {
    try await commits.run(during: "redriving") { [tables] db in
      try tables.redrive(timetokens, of: channel, for: consumer, in: db)
    }
  }

  package func removeDeadLetters(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer
  ) async throws(EngineError) -> Int {
    try await commits.run(during: "removing dead letters") { [tables] db in
      try tables.removeDeadLetters(timetokens, of: channel, for: consumer, in: db)
    }
  }

  // MARK: Retention

  package func setRetention(
    _ retention: Retention, of channel: Channel
  ) async throws(EngineError) {
    try retention.check()
    try await commits.run(during: "setting a retention") { [tables] db in
      try tables.setRetention(retention, of: channel, in: db)
    }
  }

  /// Purges in many small transactions, between which other callers write.
  package func purge(
    _ channel: Channel, before end: Timetoken?
  ) async throws(EngineError) -> Int {
    let step = 500
    var total = 0
    while true {
      let count = try await commits.run(during: "purging") { [tables] db in
        try tables.purge(channel, before: end, count: step, in: db)
      }
      total += count
      if count < step { return total }
    }
  }
}
