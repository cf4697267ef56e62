internal import GRDB

/// Settling deliveries: each call also exists in the caller's transaction, with `in: db`.
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
    try await settle(tokens, .acknowledgement)
  }

  /// Acknowledges one delivery; see ``acknowledge(_:)-([LeaseToken])``.
  public func acknowledge(_ token: LeaseToken) async throws(EngineError) {
    try await acknowledge([token])
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
  /// - Returns: the tokens whose messages became dead letters.
  /// - Throws: the errors of ``acknowledge(_:)-([LeaseToken])``, and `invalidArgument`. After
  ///   `unknownLease`, ``EngineError/deadLettered`` has the tokens whose messages became dead letters.
  @discardableResult
  public func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true
  ) async throws(EngineError) -> [LeaseToken] {
    try await settle(
      tokens, .release(after: delay, reason: reason, countsAttempt: countsAttempt))
  }

  /// Returns one delivered message to its consumer; see
  /// ``release(_:after:reason:countsAttempt:)-([LeaseToken],_,_,_)``.
  ///
  /// - Returns: whether the message became a dead letter.
  @discardableResult
  public func release(
    _ token: LeaseToken, after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true
  ) async throws(EngineError) -> Bool {
    try await !release([token], after: delay, reason: reason, countsAttempt: countsAttempt).isEmpty
  }

  /// Rejects delivered messages: they become dead letters of their consumer.
  ///
  /// - Parameter reason: why; 1 to 1,024 bytes.
  /// - Throws: the errors of ``acknowledge(_:)-([LeaseToken])``, and `invalidArgument`.
  public func reject(_ tokens: [LeaseToken], reason: String) async throws(EngineError) {
    try await settle(tokens, .rejection(reason: reason))
  }

  /// Rejects one delivered message; see ``reject(_:reason:)-([LeaseToken],_)``.
  public func reject(_ token: LeaseToken, reason: String) async throws(EngineError) {
    try await reject([token], reason: reason)
  }

  /// Changes the end of leases to `lease` from now, which can be earlier or later than before.
  ///
  /// - Throws: `unknownLease` if leases have ended. ``EngineError/unknownLeases`` lists their
  ///   tokens; all other leases are changed. Also the errors of
  ///   ``acknowledge(_:)-([LeaseToken])``, and `invalidArgument`.
  public func extend(_ tokens: [LeaseToken], by lease: Duration) async throws(EngineError) {
    try await settle(tokens, .extension(by: lease))
  }

  /// Changes the end of one lease; see ``extend(_:by:)-([LeaseToken],_)``.
  public func extend(_ token: LeaseToken, by lease: Duration) async throws(EngineError) {
    try await extend([token], by: lease)
  }

  /// - Returns: the tokens whose messages became dead letters by a release.
  /// - Throws: `unknownLease` if tokens settle nothing; all others are settled.
  @discardableResult
  private func settle(
    _ tokens: [LeaseToken], _ settlement: Settlement
  ) async throws(EngineError) -> [LeaseToken] {
    try settlement.check()
    if tokens.isEmpty {
      try requireRunning()
      return []
    }
    if let replica = try replica() {
      try requireRunning()
      return try await replica.settle(tokens, settlement).deadLettered(of: tokens, settlement)
    }
    return try await commit(during: settlement.operation) { tables, db in
      try tables.settle(tokens, settlement, in: db)
    }.deadLettered(of: tokens, settlement)
  }
}

extension MessagingEngine {
  /// Throws `invalidArgument` for a receive that is impossible.
  static func check(maximumCount: Int, lease: Duration) throws(EngineError) {
    try EngineError.requireArgument(
      maximumCount > 0, "the maximum count of a receive is \(maximumCount)",
      hint: "use at least 1")
    try Settlement.check(lease: lease)
  }
}
