public import GRDB

extension MessagingEngine {
  /// Reads the encrypted database in one snapshot, which blocks no writer.
  ///
  ///     let count = try await engine.read { db in
  ///       try Int.fetchOne(db, sql: "SELECT count(*) FROM invoice")
  ///     }
  ///
  /// A read that begins while the engine stops, or after it, throws. ``stop()`` and a lock of the
  /// vault wait for a read that has begun, up to ``EngineConfiguration/stopTimeout``. A read
  /// completes also if its task is cancelled.
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
    try requireRunning()
    let timetokens = try tables.publish(messages, in: db)
    if !timetokens.isEmpty { db.afterNextTransaction { [didCommit] _ in didCommit() } }
    return timetokens
  }
}
