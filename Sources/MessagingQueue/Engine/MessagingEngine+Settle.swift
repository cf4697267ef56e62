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
    try await running().acknowledge(tokens)
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
    try await running().release(tokens, after: delay, reason: reason)
  }

  /// Gives up on delivered messages: they become dead letters of their consumer.
  ///
  /// - Parameter reason: why; 1 to 1,024 bytes.
  /// - Throws: as ``acknowledge(_:)``, and `invalidArgument`.
  public nonisolated func reject(
    _ tokens: [LeaseToken], reason: String
  ) async throws(EngineError) {
    try await running().reject(tokens, reason: reason)
  }

  /// Lets leases that have not ended end `lease` from now, sooner or later than they did.
  ///
  /// - Throws: `unknownLease` for those that have ended: ``EngineError/unknownLeases`` has them, the
  ///   others are extended. Else as ``acknowledge(_:)``, and `invalidArgument`.
  public nonisolated func extend(
    _ tokens: [LeaseToken], by lease: Duration
  ) async throws(EngineError) {
    try await running().extend(tokens, by: lease)
  }
}
