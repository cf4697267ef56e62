internal import GRDB

extension MessagingEngine {
  /// Leases up to `maximumCount` messages of a channel to the caller for the time of `lease`.
  ///
  /// Messages come in order of priority, the highest first, and the oldest first within one
  /// priority. The call returns fewer if there are no more, or at
  /// ``EngineConfiguration/maximumReceiveByteCount``. With a timeout it waits for the first
  /// message. It notices within milliseconds that any process publishes or releases one, or that a
  /// lease or a delay ends.
  ///
  /// - Parameter timeout: how long to wait if there is no message. Default: zero, the call does not
  ///   wait.
  /// - Returns: an empty array if there was no message in that time.
  /// - Throws: `invalidArgument` for a count or a lease that is not positive; `busy`, `diskFull`,
  ///   `stopped`, `vaultLocked`, `damaged`, `inputOutput`, `outcomeUnknown`; `cancelled`, after
  ///   which nothing is leased.
  public func receive(
    from channel: Channel, for consumer: Consumer = .default, maximumCount: Int = 1,
    lease: Duration = .seconds(30), waitingUpTo timeout: Duration = .zero
  ) async throws(EngineError) -> [Delivery] {
    try EngineError.requireArgument(
      maximumCount > 0, "the maximum count of a receive is \(maximumCount)",
      hint: "use at least 1")
    try Self.check(lease: lease)
    let deadline = ContinuousClock.now + timeout
    while true {
      let generation = notifier.generation
      let reception = try await commit(during: "receiving") { tables, db in
        try tables.receive(
          from: channel, for: consumer, maximumCount: maximumCount, lease: lease, in: db)
      }
      if reception.stoppedEarly { continue }
      let rest = deadline - .now
      if !reception.deliveries.isEmpty || rest <= .zero { return reception.deliveries }
      let next = try await access.read(during: "receiving") { [tables] db in
        try tables.timeUntilNextReturn(of: channel, for: consumer, db)
      }
      let wake = await notifier.waitForChange(
        after: generation, in: [channel], within: min(rest, next ?? rest))
      if wake == .cancelled {
        throw EngineError(
          .cancelled, "receiving was cancelled; nothing was leased", hint: "call it again")
      }
    }
  }
}

extension MessagingEngine {
  /// Acknowledges deliveries: this consumer never gets these messages again.
  ///
  /// On return that is on the disk. An acknowledgement after the end of the lease still counts,
  /// unless another receiver has got the message since.
  ///
  /// - Throws: `unknownLease` if tokens are already settled, or their messages have been leased
  ///   again. ``EngineError/unknownLeases`` lists these tokens; all others are acknowledged. After
  ///   `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput` or `cancelled` none is acknowledged.
  ///   After `outcomeUnknown` it is unknown whether they are acknowledged.
  public func acknowledge(_ tokens: [LeaseToken]) async throws(EngineError) {
    try await settle(tokens, during: "acknowledging") { tables, db in
      try tables.acknowledge(tokens, in: db)
    }
  }

  /// Returns delivered messages to their consumer, to be received again after `delay`.
  ///
  /// The delay runs on the boot clock and ends early if the machine restarts. A message that was
  /// delivered as often as its consumer allows becomes a dead letter.
  ///
  /// - Parameters:
  ///   - delay: default: zero, the messages are ready immediately.
  ///   - reason: why, for the history of a dead letter; 1 to 1,024 bytes.
  ///   - countsAttempt: whether this delivery counts as an attempt. Default: true. With false, for
  ///     messages that were not processed, none becomes a dead letter.
  /// - Throws: the errors of ``acknowledge(_:)``, and `invalidArgument`.
  public func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true
  ) async throws(EngineError) {
    try EngineError.requireArgument(
      delay >= .zero && delay <= EngineConfiguration.maximumLeaseDuration,
      "the delay is \(delay)", hint: "use a delay from 0 to 366 days")
    if let reason { try Self.check(reason: reason) }
    try await settle(tokens, during: "releasing") { tables, db in
      try tables.release(
        tokens, after: delay, reason: reason, countsAttempt: countsAttempt, in: db)
    }
  }

  /// Rejects delivered messages: they become dead letters of their consumer.
  ///
  /// - Parameter reason: why; 1 to 1,024 bytes.
  /// - Throws: the errors of ``acknowledge(_:)``, and `invalidArgument`.
  public func reject(
    _ tokens: [LeaseToken], reason: String
  ) async throws(EngineError) {
    try Self.check(reason: reason)
    try await settle(tokens, during: "rejecting") { tables, db in
      try tables.reject(tokens, reason: reason, in: db)
    }
  }

  /// Changes the end of leases to `lease` from now, which can be earlier or later than before.
  ///
  /// - Throws: `unknownLease` if leases have ended. ``EngineError/unknownLeases`` lists their
  ///   tokens; all other leases are changed. Also the errors of ``acknowledge(_:)``, and
  ///   `invalidArgument`.
  public func extend(
    _ tokens: [LeaseToken], by lease: Duration
  ) async throws(EngineError) {
    try Self.check(lease: lease)
    try await settle(tokens, during: "extending") { tables, db in
      try tables.extend(tokens, by: lease, in: db)
    }
  }

  private static func check(lease: Duration) throws(EngineError) {
    try EngineError.requireArgument(
      lease > .zero && lease <= EngineConfiguration.maximumLeaseDuration,
      "the lease is \(lease)", hint: "use a lease above 0 and at most 366 days")
  }

  private static func check(reason: String) throws(EngineError) {
    let most = EngineDatabase.maximumReasonByteCount
    try EngineError.requireArgument(
      (1...most).contains(reason.utf8.count), "the reason has \(reason.utf8.count) bytes",
      hint: "use 1 to \(most) bytes")
  }

  /// - Throws: `unknownLease` if tokens settle nothing; all others are settled.
  private func settle(
    _ tokens: [LeaseToken], during operation: String,
    _ write: @escaping @Sendable (EngineDatabase, Database) throws -> [LeaseToken]
  ) async throws(EngineError) {
    if tokens.isEmpty { return try requireRunning() }
    let unknown = try await commit(during: operation, write)
    if unknown.isEmpty { return }
    throw EngineError(
      .unknownLease,
      "\(operation): \(unknown.count) of \(tokens.count) deliveries were no longer leased to you",
      hint: "take a longer lease, or settle earlier", unknownLeases: unknown)
  }
}
