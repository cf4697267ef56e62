public import GRDB

extension MessagingEngine {
  /// The encrypted database, for tables of the caller's own beside the engine's.
  ///
  ///     try await engine.database.write { db in
  ///       try db.execute(sql: "INSERT INTO invoice (number) VALUES (?)", arguments: [17])
  ///       try engine.publish(Message(channel: invoices, payload: bytes), in: db)
  ///     }
  ///
  /// Both are committed, or neither is; after `write` returns they are on the disk. The caller's
  /// transactions and the engine's own take turns. Give your tables names that differ from the
  /// engine's (`docs/explanation/queue-semantics.md` lists them), and do not change the engine's. ``stop()``
  /// closes the database: end your own reads before it. A read that begins while GRDB closes its
  /// pool is undefined and can crash the process.
  public var database: any DatabaseWriter { tables.pool }

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
  /// Receivers get the messages only after the commit, which wakes them. A commit that fails throws
  /// GRDB's error where the transaction ends; after an I/O error its outcome is unknown, as with
  /// ``EngineError/Code/outcomeUnknown``.
  ///
  /// - Parameter db: a writing connection of ``database``, inside a transaction.
  /// - Throws: `invalidArgument` outside a transaction; `payloadTooLarge`, `diskFull`, `stopped`,
  ///   `vaultLocked`, `damaged`, `inputOutput`. After an error none of the messages is published,
  ///   whether the transaction commits or not.
  @discardableResult
  public func publish(
    _ messages: [Message], in db: Database
  ) throws(EngineError) -> [Timetoken] {
    try requireRunning()
    let timetokens = try tables.publish(messages, in: db)
    if !timetokens.isEmpty { db.afterNextTransaction { [didCommit] _ in didCommit() } }
    return timetokens
  }
}
