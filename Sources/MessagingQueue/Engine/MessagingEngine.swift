package import FileLayer
package import GRDB
internal import Synchronization
package import VaultCrypto

/// Publishes and receives messages on one encrypted database.
///
/// Any number of engines, in any number of processes, work on one database; each verb is one
/// transaction. What a verb has returned is on the disk.
///
/// A message that was received is leased: nobody else gets it until the lease ends, and it is gone
/// once it is acknowledged. A lease ends at its time on the boot clock, which no change of date
/// touches, and when the machine restarts; the message is then delivered again. Delivery is
/// therefore at least once.
///
/// Every verb throws `vaultLocked` once `datavault lock` has ended the session through which the
/// engine's vault was opened.
public actor MessagingEngine {
  /// Whether the vault was opened with the user's own password.
  ///
  /// If not, the database is sealed under a key that anyone can compute from the vault file.
  public nonisolated let isSecured: Bool

  /// The limits the engine works with.
  public nonisolated let configuration: EngineConfiguration

  /// Reads the log, beside the engine's own thread.
  nonisolated let log: LogReader

  private let executor = BlockingExecutor(label: "datavault.engine")
  nonisolated let database: EngineDatabase
  nonisolated let commits: CommitQueue
  private nonisolated let isStopped = Mutex(false)
  private let isLockedOut: @Sendable () -> Bool
  private let closePool: @Sendable () throws -> Void

  /// The engine's own thread; blocking is allowed there.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Runs on a pool that the caller has opened.
  ///
  /// - Parameters:
  ///   - isLockedOut: whether somebody has locked the vault meanwhile; asked before each verb.
  ///   - closePool: what ``stop()`` does about the pool; nothing, unless it is given.
  package init(
    pool: DatabasePool, time: any TimeSource, random: RandomSource = .system,
    configuration: EngineConfiguration = EngineConfiguration(), isSecured: Bool,
    isLockedOut: @escaping @Sendable () -> Bool = { false },
    closePool: @escaping @Sendable () throws -> Void = {}
  ) async throws(EngineError) {
    database = try await EngineOpener().open(
      pool, time: time, random: random, configuration: configuration,
      bell: ChangeBell(of: pool, isLockedOut: isLockedOut))
    log = LogReader(pool: pool, bell: database.bell, isLockedOut: isLockedOut)
    commits = CommitQueue(pool)
    self.isLockedOut = isLockedOut
    self.closePool = closePool
    self.configuration = configuration
    self.isSecured = isSecured
  }

  /// Verbs that wait for the commit before theirs to end.
  package nonisolated var waitingCount: Int { commits.waitingCount }

  /// Publishes one message and returns its place in the log.
  ///
  /// On return it is on the disk. Callers that wait at the same time share one commit.
  ///
  /// - Throws: `payloadTooLarge`, `busy`, `diskFull`, `stopped`, `vaultLocked`, `damaged`,
  ///   `inputOutput`, and `cancelled` when the task was cancelled in time: the message is then not
  ///   published. After `outcomeUnknown` it may be.
  @discardableResult
  public nonisolated func publish(_ message: Message) async throws(EngineError) -> Timetoken {
    try await publish([message])[0]
  }

  /// Publishes messages in the order given, all or none, in one commit.
  ///
  /// On return they are on the disk.
  ///
  /// - Throws: as ``publish(_:)-(Message)``, of all of them.
  @discardableResult
  public nonisolated func publish(
    _ messages: [Message]
  ) async throws(EngineError) -> [Timetoken] {
    let database = try running()
    try database.checkPayloads(messages)
    if messages.isEmpty { return [] }
    let byteCount = messages.reduce(0) { $0 + $1.payload.count }
    return try await commits.run(during: "publishing", byteCount: byteCount) { db in
      try database.publish(messages, in: db)
    }
  }

  /// Leases up to `maximumCount` messages of a channel to the caller for the time of `lease`.
  ///
  /// Oldest first, those whose earlier lease has ended before all others. Fewer are returned when
  /// there are no more, or at ``EngineConfiguration/maximumReceiveByteCount``. It does not wait:
  /// none means that there is none.
  ///
  /// - Throws: `invalidArgument` for a count or a lease that is not positive; `busy`, `diskFull`,
  ///   `stopped`, `damaged`, `inputOutput`, `outcomeUnknown`, `cancelled`.
  public nonisolated func receive(
    from channel: Channel, maximumCount: Int = 1, lease: Duration = .seconds(30)
  ) async throws(EngineError) -> [Delivery] {
    let database = try running()
    try database.checkReceive(maximumCount: maximumCount, lease: lease)
    return try await commits.run(during: "receiving") { db in
      try database.receive(from: channel, maximumCount: maximumCount, lease: lease, in: db)
    }
  }

  /// Removes delivered messages for good.
  ///
  /// On return that is on the disk: they are never delivered again. A lease that
  /// has ended still counts as long as nobody else has received the message.
  ///
  /// - Throws: `unknownLease` if tokens are settled already or the messages have been leased to
  ///   another since: ``EngineError/unknownLeases`` has them, the others are acknowledged.
  ///   `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`, `cancelled`: none is acknowledged.
  ///   After `outcomeUnknown` all may be.
  public nonisolated func acknowledge(_ tokens: [LeaseToken]) async throws(EngineError) {
    let database = try running()
    if tokens.isEmpty { return }
    let unknown = try await commits.run(during: "acknowledging") { db in
      try database.acknowledge(tokens, in: db)
    }
    try EngineDatabase.require(unknown, of: tokens, during: "acknowledging")
  }

  /// Gives delivered messages back, to be received again at once or after `delay` on the boot
  /// clock; a delay ends early when the machine restarts.
  ///
  /// - Throws: as ``acknowledge(_:)``.
  public nonisolated func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero
  ) async throws(EngineError) {
    let database = try running()
    try database.checkDelay(delay)
    if tokens.isEmpty { return }
    let unknown = try await commits.run(during: "releasing") { db in
      try database.release(tokens, after: delay, in: db)
    }
    try EngineDatabase.require(unknown, of: tokens, during: "releasing")
  }

  /// Counts what is there.
  public func statistics() throws(EngineError) -> EngineStatistics {
    try running().statistics()
  }

  /// Ends the engine: every later call throws `stopped`.
  ///
  /// What is leased stays leased until its time. The database is closed; a second call does
  /// nothing.
  public func stop() async throws(EngineError) {
    let isFirst = isStopped.withLock { isStopped in
      defer { isStopped = true }
      return !isStopped
    }
    guard isFirst else { return }
    await commits.close(refusing: .stopped)
    database.bell.stop()
    do {
      try closePool()
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// The database, while the engine takes work.
  nonisolated func running() throws(EngineError) -> EngineDatabase {
    guard !isStopped.withLock({ $0 }) else { throw .stopped }
    guard !isLockedOut() else { throw .lockedFromOutside }
    return database
  }
}

extension EngineError {
  static let stopped = EngineError(
    .stopped, "the engine is stopped", hint: "start another")
}
