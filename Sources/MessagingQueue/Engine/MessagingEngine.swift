package import FileLayer
package import GRDB
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

  private let executor = BlockingExecutor(label: "datavault.engine")
  private var database: EngineDatabase?
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
    self.isLockedOut = isLockedOut
    self.closePool = closePool
    self.configuration = configuration
    self.isSecured = isSecured
    try begin(on: pool, time: time, random: random)
  }

  private func begin(
    on pool: DatabasePool, time: any TimeSource, random: RandomSource
  ) throws(EngineError) {
    database = try EngineDatabase(
      pool: pool, time: time, random: random, configuration: configuration)
  }

  /// Publishes one message and returns its place in the log.
  ///
  /// On return it is on the disk.
  ///
  /// - Throws: `payloadTooLarge`, `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`; the
  ///   message is then not published, but for `inputOutput`, after which that is unknown.
  @discardableResult
  public func publish(_ message: Message) throws(EngineError) -> Timetoken {
    let timetokens = try running().publish([message])
    return timetokens[0]
  }

  /// Publishes messages in the order given, all or none, in one commit.
  ///
  /// On return they are on the disk.
  ///
  /// - Throws: as ``publish(_:)-(Message)``; none of them is then published,
  ///   or, after `inputOutput`, all may be.
  @discardableResult
  public func publish(_ messages: [Message]) throws(EngineError) -> [Timetoken] {
    try running().publish(messages)
  }

  /// Leases up to `maximumCount` messages of a channel to the caller for the time of `lease`.
  ///
  /// Oldest first, those whose earlier lease has ended before all others. Fewer are returned when
  /// there are no more, or at ``EngineConfiguration/maximumReceiveByteCount``. It does not wait:
  /// none means that there is none.
  ///
  /// - Throws: `invalidArgument` for a count or a lease that is not positive; `busy`, `diskFull`,
  ///   `stopped`, `damaged`, `inputOutput`.
  public func receive(
    from channel: Channel, maximumCount: Int = 1, lease: Duration = .seconds(30)
  ) throws(EngineError) -> [Delivery] {
    try running().receive(from: channel, maximumCount: maximumCount, lease: lease)
  }

  /// Removes delivered messages for good.
  ///
  /// On return that is on the disk: they are never delivered again. A lease that
  /// has ended still counts as long as nobody else has received the message.
  ///
  /// - Throws: `unknownLease` if tokens are settled already or the messages have been leased to
  ///   another since: ``EngineError/unknownLeases`` has them, the others are acknowledged.
  ///   `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`: none is acknowledged.
  public func acknowledge(_ tokens: [LeaseToken]) throws(EngineError) {
    try running().acknowledge(tokens)
  }

  /// Gives delivered messages back, to be received again at once or after `delay` on the boot
  /// clock; a delay ends early when the machine restarts.
  ///
  /// - Throws: as ``acknowledge(_:)``.
  public func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero
  ) throws(EngineError) {
    try running().release(tokens, after: delay)
  }

  /// Counts what is there.
  public func statistics() throws(EngineError) -> EngineStatistics {
    try running().statistics()
  }

  /// Ends the engine: every later call throws `stopped`.
  ///
  /// What is leased stays leased until its time. The database is closed; a second call does
  /// nothing.
  public func stop() throws(EngineError) {
    guard database.take() != nil else { return }
    do {
      try closePool()
    } catch {
      throw EngineError(starting: error)
    }
  }

  private func running() throws(EngineError) -> EngineDatabase {
    guard let database else {
      throw EngineError(.stopped, "the engine is stopped", hint: "start another")
    }
    guard !isLockedOut() else { throw .lockedFromOutside }
    return database
  }
}
