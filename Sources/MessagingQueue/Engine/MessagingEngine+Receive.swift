extension MessagingEngine {
  /// Leases up to `maximumCount` messages of a channel to the caller for the time of `lease`.
  ///
  /// The highest priority first, the oldest first within one. Fewer are returned when
  /// there are no more, or at ``EngineConfiguration/maximumReceiveByteCount``. With a timeout it waits
  /// for the first one, which it notices within milliseconds, whichever process publishes or releases it,
  /// and also when a lease or a delay ends.
  ///
  /// - Parameter timeout: how long to wait if there is none; zero, the default, not at all.
  /// - Returns: nothing if there was none in that time.
  /// - Throws: `invalidArgument` for a count or a lease that is not positive; `busy`, `diskFull`,
  ///   `stopped`, `vaultLocked`, `damaged`, `inputOutput`, `outcomeUnknown`; `cancelled`, with which
  ///   nothing was leased.
  public nonisolated func receive(
    from channel: Channel, for consumer: Consumer = .default, maximumCount: Int = 1,
    lease: Duration = .seconds(30), waitingUpTo timeout: Duration = .zero
  ) async throws(EngineError) -> [Delivery] {
    let operations = try running()
    let tables = operations.tables
    let deadline = ContinuousClock.now + timeout
    while true {
      let ringCount = tables.bell.ringCount
      let deliveries = try await operations.receive(
        from: channel, for: consumer, maximumCount: maximumCount, lease: lease)
      let rest = deadline - .now
      if !deliveries.isEmpty || rest <= .zero { return deliveries }
      let next = try await log.read(during: "receiving") { db in
        try tables.timeUntilNextReturn(of: channel, for: consumer, db)
      }
      let wake = await tables.bell.nextRing(
        after: ringCount, in: [channel], within: min(rest, next ?? rest))
      if wake == .cancelled {
        throw EngineError(
          .cancelled, "receiving was cancelled; nothing was leased", hint: "call it again")
      }
      _ = try running()
    }
  }
}
