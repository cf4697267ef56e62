public import GRDB

extension MessagingEngine {
  /// Reads the encrypted database in one snapshot, which blocks no writer.
  ///
  ///     let count = try await engine.read { db in
  ///       try Int.fetchOne(db, sql: "SELECT count(*) FROM invoice")
  ///     }
  ///
  /// A read that begins while the engine stops, or after it, throws. ``stop()`` and a lock of the
  /// vault wait for a read that has begun, up to ``EngineConfiguration/stopTimeout``, and then interrupt
  /// it. A read completes also if its task is cancelled. Five run together, those of the engine
  /// among them: keep yours short.
  ///
  /// - Parameter body: runs on a thread that can block. Do not keep the connection after it returns.
  /// - Throws: `vaultLocked`, `stopped`; `cancelled` before it begins; the errors of `body`,
  ///   unchanged.
  public func read<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try await access.read(body)
  }

  /// Runs a transaction on the encrypted database, for tables of the caller's own beside the
  /// engine's.
  ///
  ///     try await engine.write { db in
  ///       try db.execute(sql: "INSERT INTO invoice (number) VALUES (?)", arguments: [17])
  ///       try engine.publish(Message(channel: invoices, payload: bytes), in: db)
  ///     }
  ///
  /// Both are committed, or neither is; after `write` returns they are on the disk. If `body`
  /// throws, the transaction is rolled back. The caller's transactions and the engine's own take
  /// turns, so keep yours short. Give your tables names that differ from the engine's
  /// (`docs/explanation/queue-semantics.md` lists them), and do not change the engine's. ``stop()``
  /// and a lock of the vault wait as for ``read(_:)``.
  ///
  /// - Parameter body: runs on a thread that can block, once. Do not keep the connection after it
  ///   returns.
  /// - Throws: `vaultLocked`, `stopped`, `busy`, `diskFull`, `inputOutput`; `cancelled` before it
  ///   begins; the errors of `body`, unchanged. Nothing is committed then. After `outcomeUnknown` it
  ///   is unknown whether the transaction is committed.
  public func write<Value: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    try requireRunning()
    return try await access.write(body)
  }

  /// The pool beneath, which tests hold and look at.
  package var pool: DatabasePool { tables.pool }

  /// Publishes one message in the caller's transaction: both are committed, or neither is.
  ///
  /// - Throws: the errors of ``publish(_:in:)-([Message],_)``.
  @discardableResult
  public func publish(
    _ message: Message, in db: Database
  ) throws(EngineError) -> Timetoken {
    try publish([message], in: db)[0]
  }

  /// Publishes messages, all or none, in the caller's transaction: both are committed, or neither
  /// is.
  ///
  /// Receivers get the messages only after the commit, which wakes them.
  ///
  /// - Parameter db: the connection of ``write(_:)``.
  /// - Throws: `invalidArgument` outside a transaction; `payloadTooLarge`, `diskFull`, `stopped`,
  ///   `vaultLocked`, `damaged`, `inputOutput`. After an error none of the messages is published,
  ///   whether the transaction commits or not.
  @discardableResult
  public func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    try requireOnlyHome(
      during: "publishing in a transaction", hint: "use post, which needs no place in the log")
    try tables.check(messages)
    return try join(db, during: "publishing") { tables, publication in
      messages.isEmpty ? [] : try tables.publish(messages, in: &publication, db)
    }
  }

  /// Publishes messages, all or none, in the caller's transaction, without their places in the log: both are
  /// committed, or neither is.
  ///
  /// Unlike ``publish(_:in:)-([Message],_)``, it also works on a home that is one of several: ``post(_:)-([Message])``.
  ///
  /// - Throws: the errors of ``publish(_:in:)-([Message],_)``.
  public func post(_ messages: [Message], in db: Database) throws(EngineError) {
    guard let replica = try replica() else {
      try publish(messages, in: db)
      return
    }
    try tables.check(messages)
    _ = try join(db, during: "publishing") { _, _ in
      try DatabaseSize.requireSpace(db)
      if !messages.isEmpty { _ = try replica.post(messages, for: 0, in: db) }
    }
  }
}

extension MessagingEngine {
  /// Counts a transaction of the caller as a commit of the engine, for tables of a server beside the engine's.
  ///
  /// After its commit, and not after a rollback, callers wake that wait for any change in this process
  /// (``ChangeNotifier/waitForChange(after:in:within:)`` of all channels) and all that wait in others.
  ///
  /// - Parameter db: the connection of ``write(_:)``.
  /// - Throws: `invalidArgument` outside a transaction; `stopped`, `vaultLocked`, `diskFull`, `damaged`,
  ///   `inputOutput`.
  package func noteChange(in db: Database) throws(EngineError) {
    try requireRunning()
    try tables.noteChange(in: db)
    db.afterNextTransaction { [didCommit] _ in didCommit() }
  }
}

/// Receiving and settling in the caller's transaction.
extension MessagingEngine {
  /// Leases messages in the caller's transaction: the leases and the caller's rows are committed
  /// together, or not at all.
  ///
  /// It does not wait for messages. A lease begins now, so its time runs during the transaction. Do
  /// nothing outside the transaction about a delivery before the commit: after a rollback the
  /// message is leased to no one, and the token settles nothing.
  ///
  /// - Parameter db: the connection of ``write(_:)``.
  /// - Throws: `invalidArgument`, also outside a transaction; `stopped`, `vaultLocked`, `diskFull`,
  ///   `damaged`, `inputOutput`. Nothing is leased then.
  public func receive(
    from channel: Channel, for consumer: Consumer = .default, maximumCount: Int = 1,
    lease: Duration = .seconds(30), in db: Database
  ) throws(EngineError) -> [Delivery] {
    try Self.check(maximumCount: maximumCount, lease: lease)
    try requireOnlyHome(
      during: "receiving in a transaction", hint: "receive without a transaction")
    return try join(db, during: "receiving") { tables, _ in
      while true {
        let reception = try tables.receive(
          from: channel, for: consumer, maximumCount: maximumCount, lease: lease, in: db)
        if !reception.stoppedEarly { return reception.deliveries }
      }
    }
  }

  /// Acknowledges deliveries in the caller's transaction: the acknowledgements and the caller's rows
  /// are committed together, or not at all.
  ///
  ///     try await engine.write { db in
  ///       try db.execute(sql: "UPDATE job SET state = 'done' WHERE id = ?", arguments: [id])
  ///       try engine.acknowledge([delivery.token], in: db)
  ///     }
  ///
  /// If the error `unknownLease` leaves `write`, nothing is committed: neither the rows of a worker
  /// that came too late, nor its other acknowledgements. If you catch it, those are kept.
  ///
  /// - Parameter db: the connection of ``write(_:)``.
  /// - Throws: `invalidArgument` outside a transaction; `unknownLease` as
  ///   ``acknowledge(_:)-([LeaseToken])``; `stopped`, `vaultLocked`, `diskFull`, `damaged`,
  ///   `inputOutput`, after which none is acknowledged, whether the transaction commits or not.
  public func acknowledge(_ tokens: [LeaseToken], in db: Database) throws(EngineError) {
    try settle(tokens, .acknowledgement, in: db)
  }

  /// Acknowledges one delivery in the caller's transaction; see
  /// ``acknowledge(_:in:)-([LeaseToken],_)``.
  public func acknowledge(_ token: LeaseToken, in db: Database) throws(EngineError) {
    try acknowledge([token], in: db)
  }

  /// Returns delivered messages to their consumer, in the caller's transaction.
  ///
  /// - Parameters: those of ``release(_:after:reason:countsAttempt:)-([LeaseToken],_,_,_)``.
  /// - Returns: the tokens whose messages become dead letters with the commit.
  /// - Throws: the errors of ``acknowledge(_:in:)-([LeaseToken],_)``, and `invalidArgument`.
  @discardableResult
  public func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true, in db: Database
  ) throws(EngineError) -> [LeaseToken] {
    try settle(
      tokens, .release(after: delay, reason: reason, countsAttempt: countsAttempt), in: db)
  }

  /// Returns one delivered message to its consumer, in the caller's transaction.
  ///
  /// - Returns: whether the message becomes a dead letter with the commit.
  @discardableResult
  public func release(
    _ token: LeaseToken, after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true, in db: Database
  ) throws(EngineError) -> Bool {
    try !release([token], after: delay, reason: reason, countsAttempt: countsAttempt, in: db)
      .isEmpty
  }

  /// Rejects delivered messages in the caller's transaction: with its commit they become dead
  /// letters.
  ///
  /// - Throws: the errors of ``acknowledge(_:in:)-([LeaseToken],_)``, and `invalidArgument`.
  public func reject(
    _ tokens: [LeaseToken], reason: String, in db: Database
  ) throws(EngineError) {
    try settle(tokens, .rejection(reason: reason), in: db)
  }

  /// Rejects one delivered message in the caller's transaction.
  public func reject(
    _ token: LeaseToken, reason: String, in db: Database
  ) throws(EngineError) {
    try reject([token], reason: reason, in: db)
  }

  /// Changes the end of leases to `lease` from now, in the caller's transaction.
  ///
  /// - Throws: the errors of ``acknowledge(_:in:)-([LeaseToken],_)``, and `invalidArgument`.
  public func extend(
    _ tokens: [LeaseToken], by lease: Duration, in db: Database
  ) throws(EngineError) {
    try settle(tokens, .extension(by: lease), in: db)
  }

  /// Changes the end of one lease, in the caller's transaction.
  public func extend(
    _ token: LeaseToken, by lease: Duration, in db: Database
  ) throws(EngineError) {
    try extend([token], by: lease, in: db)
  }

  @discardableResult
  private func settle(
    _ tokens: [LeaseToken], _ settlement: Settlement, in db: Database
  ) throws(EngineError) -> [LeaseToken] {
    try settlement.check()
    try requireOnlyHome(
      during: "\(settlement.operation) in a transaction", hint: "settle after the transaction")
    return try join(db, during: settlement.operation) { tables, _ in
      try tables.settle(tokens, settlement, in: db)
    }.deadLettered(of: tokens, settlement)
  }

  /// Runs an operation in the caller's transaction, whole or not at all.
  ///
  /// Wake-ups, counts and the anchor follow the commit; after a rollback there are none.
  func join<Result>(
    _ db: Database, during operation: String,
    _ body: (EngineDatabase, inout Publication?) throws -> Result
  ) throws(EngineError) -> Result {
    try requireRunning()
    let (result, hasChanges) = try tables.join(db, during: operation, body)
    if hasChanges { db.afterNextTransaction { [didCommit] _ in didCommit() } }
    return result
  }
}
