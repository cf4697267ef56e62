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
/// When its vault is locked, by `Vault.lock()` or by `datavault lock` where it was opened through a
/// session, the engine finishes the commit that is under way, closes its database and throws
/// `vaultLocked` from then on: start another. The end of a lock timeout or of a session's time does
/// not concern it, unless ``EngineConfiguration/stopsWhenVaultExpires`` says so.
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
  nonisolated let operations: QueueOperations
  /// Told, on the writer's queue, of each commit of the engine's and of the caller's with messages.
  nonisolated let didCommit: @Sendable () -> Void
  nonisolated let life: EngineStateStore
  nonisolated let anchors: AnchorRecorder?
  /// Why no work is taken; nil while it is.
  private nonisolated let refusal: @Sendable () -> EngineError?
  private let closePool: @Sendable () throws -> Void
  /// The rounds of maintenance, if this engine does them.
  nonisolated let upkeep = Mutex<Task<Void, Never>?>(nil)
  /// Nil when nobody takes them.
  nonisolated let metrics: EngineMetrics?
  /// The rounds in which the gauges are set.
  nonisolated let sampling = Mutex<Task<Void, Never>?>(nil)

  /// The engine's own thread; blocking is allowed there.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Runs on a pool that the caller has opened.
  ///
  /// - Parameters:
  ///   - life: in the state `starting`, for whoever has seen it begin; the caller reports `opened`.
  ///   - recordAnchor: marks how far the database has come; never called, unless it is given.
  ///   - isLockedOut: whether somebody has locked the vault meanwhile; asked before each verb.
  ///   - closePool: what ``stop()`` does about the pool; nothing, unless it is given.
  package init(
    pool: DatabasePool, time: any TimeSource, random: RandomSource = .system,
    configuration: EngineConfiguration = EngineConfiguration(), isSecured: Bool,
    life: EngineStateStore? = nil, recordAnchor: (@Sendable () async throws -> Void)? = nil,
    isLockedOut: @escaping @Sendable () -> Bool = { false },
    closePool: @escaping @Sendable () throws -> Void = {}
  ) async throws(EngineError) {
    let life = life ?? EngineStateStore(.start, .opened)
    let refusal: @Sendable () -> EngineError? = {
      (life.refusal ?? (isLockedOut() ? .vaultLocked : nil)).map(EngineError.notRunning)
    }
    let anchors = recordAnchor.map { record in
      AnchorRecorder(
        commitCount: configuration.anchorCommitCount, interval: configuration.anchorInterval,
        logger: configuration.logger, record: record)
    }
    let didCommit: @Sendable () -> Void = { anchors?.didCommit() }
    let metrics = EngineMetrics(configuration)
    let snapshots = SnapshotReader(pool)
    let tables = try await EngineOpener().open(
      pool, snapshots, time: time, random: random, configuration: configuration,
      notifier: ChangeNotifier(of: snapshots, isLockedOut: isLockedOut),
      commitCounter: metrics.map { metrics in CommitCounter { metrics.count($0) } })
    log = LogReader(snapshots, notifier: tables.notifier, refusal: refusal)
    operations = QueueOperations(tables) { report in
      metrics?.record(report)
      didCommit()
    }
    self.metrics = metrics
    self.didCommit = didCommit
    self.anchors = anchors
    self.refusal = refusal
    self.life = life
    self.closePool = closePool
    self.configuration = configuration
    self.isSecured = isSecured
  }

  nonisolated var tables: EngineDatabase { operations.tables }
  nonisolated var commits: CommitQueue { operations.commits }

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
    try await running().publish(messages)
  }

  /// Counts what is there.
  public func statistics() throws(EngineError) -> EngineStatistics {
    try running().tables.statistics()
  }

  /// Counts what is there of one channel, beside the engine's own thread.
  ///
  /// - Returns: nil for a channel that was never published to nor given a consumer or a retention.
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public nonisolated func statistics(
    of channel: Channel
  ) async throws(EngineError) -> EngineStatistics.ChannelStatistics? {
    let tables = try running().tables
    return try await log.read(during: "counting") { db in
      try tables.statistics(db, of: channel).channels.first
    }
  }

  /// The engine's operations, while it takes work.
  nonisolated func running() throws(EngineError) -> QueueOperations {
    if let refusal = refusal() { throw refusal }
    return operations
  }

  /// Ends all connections; waits for those who read.
  func closeConnections() throws(EngineError) {
    tables.snapshots.close()
    do {
      try closePool()
    } catch {
      throw EngineError(starting: error)
    }
  }
}

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
      let generation = tables.notifier.generation
      let deliveries = try await operations.receive(
        from: channel, for: consumer, maximumCount: maximumCount, lease: lease)
      let rest = deadline - .now
      if !deliveries.isEmpty || rest <= .zero { return deliveries }
      let next = try await log.read(during: "receiving") { db in
        try tables.timeUntilNextReturn(of: channel, for: consumer, db)
      }
      let wake = await tables.notifier.waitForChange(
        after: generation, in: [channel], within: min(rest, next ?? rest))
      if wake == .cancelled {
        throw EngineError(
          .cancelled, "receiving was cancelled; nothing was leased", hint: "call it again")
      }
      _ = try running()
    }
  }
}

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

extension MessagingEngine {
  /// Makes a consumer that begins with the oldest message of a channel, or changes how often one that
  /// is there gets a message before it becomes a dead letter.
  ///
  /// Without this a consumer is made by its first receive, and gets a message until it is
  /// acknowledged. Messages that are published before a consumer exists reach it as long as the log
  /// still has them.
  ///
  /// - Parameter maximumAttempts: at least 1; nil, the default, for no limit.
  /// - Throws: `invalidArgument`, `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`.
  public nonisolated func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int? = nil
  ) async throws(EngineError) {
    try await running().addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts)
  }

  /// Forgets a consumer, its deliveries and its dead letters.
  ///
  /// What no other consumer needs leaves the log, unless the channel keeps it; after the last
  /// consumer nothing does.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  public nonisolated func removeConsumer(
    _ consumer: Consumer, of channel: Channel
  ) async throws(EngineError) -> Bool {
    try await running().removeConsumer(consumer, of: channel)
  }

  /// A consumer's dead letters in the order of the log, at most `maximumCount` of them, from the one
  /// after `timetoken` on.
  public func deadLetters(
    of channel: Channel, for consumer: Consumer = .default, after timetoken: Timetoken? = nil,
    maximumCount: Int = 100
  ) throws(EngineError) -> [DeadLetter] {
    let tables = try running().tables
    return try tables.read(during: "reading dead letters") { db in
      try tables.deadLetters(
        of: channel, for: consumer, after: timetoken, maximumCount: maximumCount, in: db)
    }
  }

  /// Gives dead letters back to their consumer: ready at once, as if never tried, with their history.
  ///
  /// - Parameter timetokens: which; nil for all.
  /// - Returns: How many there were.
  @discardableResult
  public nonisolated func redrive(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    try await running().redrive(timetokens, of: channel, for: consumer)
  }

  /// Removes dead letters for good.
  ///
  /// - Parameter timetokens: which; nil for all.
  /// - Returns: How many there were.
  @discardableResult
  public nonisolated func removeDeadLetters(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    try await running().removeDeadLetters(timetokens, of: channel, for: consumer)
  }
}
