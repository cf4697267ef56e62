extension EngineDatabase {
  /// Publishes in a transaction of its own; on return the messages are on the disk.
  package func publish(_ messages: [Message]) throws(EngineError) -> [Timetoken] {
    try check(messages)
    return try write(during: "publishing") { db in try publish(messages, in: db) }
  }

  /// Receives in transactions of its own, one after the other while the log has more to pass.
  package func receive(
    from channel: Channel, for consumer: Consumer = .default, maximumCount: Int, lease: Duration
  ) throws(EngineError) -> [Delivery] {
    try Self.check(maximumCount: maximumCount)
    try Self.check(lease: lease)
    while true {
      let reception = try write(during: "receiving") { db in
        try receive(
          from: channel, for: consumer, maximumCount: maximumCount, lease: lease, in: db)
      }
      if !reception.stoppedEarly { return reception.deliveries }
    }
  }

  /// Acknowledges in a transaction of its own; on return that is on the disk.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func acknowledge(_ tokens: [LeaseToken]) throws(EngineError) {
    let unknown = try write(during: "acknowledging") { db in try acknowledge(tokens, in: db) }
    try Self.require(unknown, of: tokens, during: "acknowledging")
  }

  /// Releases in a transaction of its own.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil
  ) throws(EngineError) {
    try Self.check(delay: delay)
    if let reason { try Self.check(reason: reason) }
    let unknown = try write(during: "releasing") { db in
      try release(tokens, after: delay, reason: reason, in: db)
    }
    try Self.require(unknown, of: tokens, during: "releasing")
  }

  /// Rejects in a transaction of its own.
  ///
  /// - Throws: `unknownLease` if a token settles nothing; the others are settled all the same.
  package func reject(_ tokens: [LeaseToken], reason: String) throws(EngineError) {
    try Self.check(reason: reason)
    let unknown = try write(during: "rejecting") { db in try reject(tokens, reason: reason, in: db)
    }
    try Self.require(unknown, of: tokens, during: "rejecting")
  }

  /// Extends in a transaction of its own.
  ///
  /// - Throws: `unknownLease` if a delivery is not the token's any more; the others are extended all
  ///   the same.
  package func extend(_ tokens: [LeaseToken], by lease: Duration) throws(EngineError) {
    try Self.check(lease: lease)
    let unknown = try write(during: "extending") { db in try extend(tokens, by: lease, in: db) }
    try Self.require(unknown, of: tokens, during: "extending")
  }
}
