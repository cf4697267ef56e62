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
    try Self.check(maximumCount: maximumCount, lease: lease)
    let deadline = ContinuousClock.now + timeout
    while true {
      let generation = notifier.generation
      let reception = try await receive(from: channel, for: consumer, maximumCount, lease)
      if reception.stoppedEarly { continue }
      let rest = deadline - .now
      if !reception.deliveries.isEmpty || rest <= .zero { return reception.deliveries }
      try await waitForMessages(of: channel, for: consumer, after: generation, upTo: rest)
    }
  }

  /// Leases what there is.
  private func receive(
    from channel: Channel, for consumer: Consumer, _ maximumCount: Int, _ lease: Duration
  ) async throws(EngineError) -> EngineDatabase.Reception {
    if let replica = try replica() {
      try requireRunning()
      return EngineDatabase.Reception(
        deliveries: try await replica.receive(
          from: channel, for: consumer, maximumCount: maximumCount, lease: lease))
    }
    return try await commit(during: "receiving") { tables, db in
      try tables.receive(
        from: channel, for: consumer, maximumCount: maximumCount, lease: lease, in: db)
    }
  }

  /// Waits until a receive can find something that the last one did not: a message of any process, or
  /// the end of a lease or a delay.
  ///
  /// - Parameters:
  ///   - seen: ``messageGeneration`` from before that receive, which found nothing.
  ///   - limit: how long to wait at most.
  package func waitForMessages(
    of channel: Channel, for consumer: Consumer, after seen: NotificationGeneration,
    upTo limit: Duration
  ) async throws(EngineError) {
    let next = try await access.read(during: "receiving") { [tables] db in
      try tables.timeUntilNextReturn(of: channel, for: consumer, db)
    }
    let interval = try replica()?.receiveInterval ?? limit
    let wake = await notifier.waitForChange(
      after: seen, in: [channel], within: min(limit, next ?? limit, interval))
    if wake == .cancelled {
      throw EngineError(
        .cancelled, "receiving was cancelled; nothing was leased", hint: "call it again")
    }
  }

  /// Changes with each notification that messages can be received.
  package var messageGeneration: NotificationGeneration { notifier.generation }
}
