internal import GRDB

extension MessagingEngine {
  /// Ends deliveries for good.
  ///
  /// On return that is on the disk: they are never delivered to this consumer again. A lease that
  /// has ended still counts as long as nobody else has received the message.
  ///
  /// - Throws: `unknownLease` if tokens are settled already or the messages have been leased to
  ///   another since: ``EngineError/unknownLeases`` has them, the others are acknowledged.
  ///   `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`, `cancelled`: none is acknowledged.
  ///   After `outcomeUnknown` all may be.
  public nonisolated func acknowledge(_ tokens: [LeaseToken]) async throws(EngineError) {
    let tables = try running()
    try await settle(tokens, during: "acknowledging") { db in
      try tables.acknowledge(tokens, in: db)
    }
  }

  /// Gives delivered messages back, to be received again at once or after `delay` on the boot
  /// clock; a delay ends early when the machine restarts.
  ///
  /// One that was delivered as often as its consumer allows becomes a dead letter.
  ///
  /// - Parameter reason: why, for the history of a dead letter; 1 to 1,024 bytes.
  /// - Throws: as ``acknowledge(_:)``, and `invalidArgument`.
  public nonisolated func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil
  ) async throws(EngineError) {
    let tables = try running()
    try EngineDatabase.check(delay: delay)
    if let reason { try EngineDatabase.check(reason: reason) }
    try await settle(tokens, during: "releasing") { db in
      try tables.release(tokens, after: delay, reason: reason, in: db)
    }
  }

  /// Gives up on delivered messages: they become dead letters of their consumer.
  ///
  /// - Parameter reason: why; 1 to 1,024 bytes.
  /// - Throws: as ``acknowledge(_:)``, and `invalidArgument`.
  public nonisolated func reject(
    _ tokens: [LeaseToken], reason: String
  ) async throws(EngineError) {
    let tables = try running()
    try EngineDatabase.check(reason: reason)
    try await settle(tokens, during: "rejecting") { db in
      try tables.reject(tokens, reason: reason, in: db)
    }
  }

  /// Lets leases that have not ended end `lease` from now, sooner or later than they did.
  ///
  /// - Throws: `unknownLease` for those that have ended: ``EngineError/unknownLeases`` has them, the
  ///   others are extended. Else as ``acknowledge(_:)``, and `invalidArgument`.
  public nonisolated func extend(
    _ tokens: [LeaseToken], by lease: Duration
  ) async throws(EngineError) {
    let tables = try running()
    try EngineDatabase.check(lease: lease)
    try await settle(tokens, during: "extending") { db in
      try tables.extend(tokens, by: lease, in: db)
    }
  }

  private nonisolated func settle(
    _ tokens: [LeaseToken], during operation: String,
    _ verb: @escaping @Sendable (Database) throws -> [LeaseToken]
  ) async throws(EngineError) {
    if tokens.isEmpty { return }
    let unknown = try await commits.run(during: operation, verb)
    try EngineDatabase.require(unknown, of: tokens, during: operation)
  }
}
