package import FileLayer
package import GRDB
internal import Synchronization
internal import SystemPackage
package import VaultCrypto

/// Publishes and receives messages on one encrypted database.
///
/// Any number of engines, in any number of processes, can share one database. Each operation is one
/// transaction. When an operation returns, its result is on the disk.
///
/// A received message is leased: no other receiver of its consumer gets it until the lease ends.
/// After it is acknowledged, it is gone for that consumer. A lease ends at its time on the boot
/// clock, which changes of the date do not affect, and when the machine restarts. The message is
/// then delivered again, so delivery is at least once.
///
/// The engine stops when its vault is locked: by `Vault.lock()`, or by `datavault lock` if a
/// session opened the vault. It finishes the commit under way, closes its database and then throws
/// `vaultLocked`; start another engine. It continues when a lock timeout or a session expires,
/// unless ``EngineConfiguration/stopsWhenVaultExpires`` is set.
public final class MessagingEngine: Sendable {
  /// Whether the vault was opened with the user's own password.
  ///
  /// If not, the database is sealed under a key that anyone can compute from the vault file.
  public let isSecured: Bool

  /// The limits the engine works with.
  public let configuration: EngineConfiguration

  /// Reads in snapshots that block no writer.
  let reader: SnapshotReader
  let operations: QueueOperations
  /// Called on the writer's queue after each commit with messages, the engine's or the caller's.
  let didCommit: @Sendable () -> Void
  let stateStore: EngineStateStore
  let anchors: AnchorRecorder?
  /// Why the engine takes no work; nil while it runs.
  private let refusal: @Sendable () -> EngineError?
  private let closePool: @Sendable () throws -> Void
  /// The task that does rounds of maintenance, if this engine does them.
  let upkeep = Mutex<Task<Void, Never>?>(nil)
  /// Nil if no backend takes metrics.
  let metrics: EngineMetrics?
  /// The task that sets the gauges.
  let sampling = Mutex<Task<Void, Never>?>(nil)

  /// Runs on a pool that the caller has opened; blocks the calling thread.
  ///
  /// - Parameters:
  ///   - stateStore: in the state `starting`, if the caller has followed the start; the caller then
  ///     reports `opened`. Default: a new one in the state `running`.
  ///   - recordAnchor: records in the vault how far the database has come. Default: nil, no anchor
  ///     is recorded.
  ///   - isLockedOut: whether the vault has been locked; called before each operation.
  ///   - closePool: how ``stop()`` closes the pool. Default: it leaves the pool open.
  package init(
    pool: DatabasePool, time: any TimeSource, random: RandomSource = .system,
    configuration: EngineConfiguration = EngineConfiguration(), isSecured: Bool,
    stateStore: EngineStateStore? = nil, recordAnchor: (@Sendable () async throws -> Void)? = nil,
    isLockedOut: @escaping @Sendable () -> Bool = { false },
    closePool: @escaping @Sendable () throws -> Void = {}
  ) throws(EngineError) {
    let stateStore = stateStore ?? EngineStateStore(.start, .opened)
    let refusal: @Sendable () -> EngineError? = {
      (stateStore.refusal ?? (isLockedOut() ? .vaultLocked : nil)).map(EngineError.notRunning)
    }
    let anchors = recordAnchor.map { record in
      AnchorRecorder(
        commitCount: configuration.anchorCommitCount, interval: configuration.anchorInterval,
        logger: configuration.logger, record: record)
    }
    let didCommit: @Sendable () -> Void = { anchors?.didCommit() }
    let metrics = EngineMetrics(configuration)
    reader = SnapshotReader(pool, refusal: refusal)
    let tables = try EngineDatabase(
      pool: pool, time: time, random: random, configuration: configuration,
      notifier: ChangeNotifier(of: reader, isLockedOut: isLockedOut),
      commitCounter: metrics.map { metrics in CommitCounter { metrics.count($0) } })
    operations = QueueOperations(tables) { report in
      metrics?.record(report)
      didCommit()
    }
    self.metrics = metrics
    self.didCommit = didCommit
    self.anchors = anchors
    self.refusal = refusal
    self.stateStore = stateStore
    self.closePool = closePool
    self.configuration = configuration
    self.isSecured = isSecured
  }

  var tables: EngineDatabase { operations.tables }
  /// Wakes callers that wait for messages.
  package var notifier: ChangeNotifier { tables.notifier }
  var commits: CommitQueue { operations.commits }

  /// Operations that wait for the commit before theirs to end.
  package var waitingCount: Int { commits.waitingCount }

  /// Publishes one message and returns its place in the log.
  ///
  /// On return the message is on the disk. Callers that wait at the same time share one commit.
  ///
  /// - Throws: `payloadTooLarge`, `invalidArgument`, `busy`, `diskFull`, `stopped`, `vaultLocked`,
  ///   `damaged`, `inputOutput`; `cancelled` if the task was cancelled before the commit began. The
  ///   message is then not published. After `outcomeUnknown` it is unknown whether it was
  ///   published.
  @discardableResult
  public func publish(_ message: Message) async throws(EngineError) -> Timetoken {
    try await publish([message])[0]
  }

  /// Publishes messages in the order given, all or none, in one commit.
  ///
  /// On return they are on the disk.
  ///
  /// - Throws: the errors of ``publish(_:)-(Message)``, for all messages together.
  @discardableResult
  public func publish(
    _ messages: [Message]
  ) async throws(EngineError) -> [Timetoken] {
    try await running().publish(messages)
  }

  /// Counts messages, consumers and dead letters of every channel in one snapshot.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func statistics() async throws(EngineError) -> EngineStatistics {
    try await reader.read(during: "counting") { [tables] db in try tables.statistics(db) }
  }

  /// Counts messages, consumers and dead letters of one channel.
  ///
  /// - Returns: nil for a channel that has never had a message, a consumer or a retention.
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func statistics(
    of channel: Channel
  ) async throws(EngineError) -> EngineStatistics.ChannelStatistics? {
    try await reader.read(during: "counting") { [tables] db in
      try tables.statistics(db, of: channel).channels.first
    }
  }

  /// The engine's operations; throws if the engine takes no work.
  func running() throws(EngineError) -> QueueOperations {
    if let refusal = refusal() { throw refusal }
    return operations
  }

  /// Closes all connections after their reads have ended.
  func closeConnections() async throws(EngineError) {
    try await onBlockingThread("datavault.engine-closing") { () throws(EngineError) in
      self.reader.close()
      do {
        try self.closePool()
      } catch {
        throw EngineError(starting: error)
      }
    }
  }
}

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
    let operations = try running()
    let tables = operations.tables
    let deadline = ContinuousClock.now + timeout
    while true {
      let generation = tables.notifier.generation
      let deliveries = try await operations.receive(
        from: channel, for: consumer, maximumCount: maximumCount, lease: lease)
      let rest = deadline - .now
      if !deliveries.isEmpty || rest <= .zero { return deliveries }
      let next = try await reader.read(during: "receiving") { db in
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
  /// Acknowledges deliveries: this consumer never gets these messages again.
  ///
  /// On return that is on the disk. An acknowledgement after the end of the lease still counts,
  /// unless another receiver has got the message since.
  ///
  /// - Throws: `unknownLease` if tokens are already settled, or their messages have been leased
  ///   again. ``EngineError/unknownLeases`` lists these tokens; all others are acknowledged. After
  ///   `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput` or `cancelled` none is acknowledged.
  ///   After `outcomeUnknown` it is unknown whether they are acknowledged.
  public func acknowledge(_ tokens: [LeaseToken]) async throws(EngineError) {
    try await running().acknowledge(tokens)
  }

  /// Returns delivered messages to their consumer, to be received again after `delay`.
  ///
  /// The delay runs on the boot clock and ends early if the machine restarts. A message that was
  /// delivered as often as its consumer allows becomes a dead letter.
  ///
  /// - Parameters:
  ///   - delay: default: zero, the messages are ready immediately.
  ///   - reason: why, for the history of a dead letter; 1 to 1,024 bytes.
  /// - Throws: the errors of ``acknowledge(_:)``, and `invalidArgument`.
  public func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil
  ) async throws(EngineError) {
    try await running().release(tokens, after: delay, reason: reason)
  }

  /// Rejects delivered messages: they become dead letters of their consumer.
  ///
  /// - Parameter reason: why; 1 to 1,024 bytes.
  /// - Throws: the errors of ``acknowledge(_:)``, and `invalidArgument`.
  public func reject(
    _ tokens: [LeaseToken], reason: String
  ) async throws(EngineError) {
    try await running().reject(tokens, reason: reason)
  }

  /// Changes the end of leases to `lease` from now, which can be earlier or later than before.
  ///
  /// - Throws: `unknownLease` if leases have ended. ``EngineError/unknownLeases`` lists their
  ///   tokens; all other leases are changed. Also the errors of ``acknowledge(_:)``, and
  ///   `invalidArgument`.
  public func extend(
    _ tokens: [LeaseToken], by lease: Duration
  ) async throws(EngineError) {
    try await running().extend(tokens, by: lease)
  }
}

extension MessagingEngine {
  /// Adds a consumer that begins with the oldest message of a channel, or changes its limit of
  /// attempts.
  ///
  /// Without this call, the first receive adds the consumer, without a limit. Messages published
  /// before a consumer exists reach it as long as the log still has them.
  ///
  /// - Parameter maximumAttempts: how often the consumer gets a message before it becomes a dead
  ///   letter; at least 1. Default: nil, no limit.
  /// - Throws: `invalidArgument`, `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`.
  public func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int? = nil
  ) async throws(EngineError) {
    try await running().addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts)
  }

  /// Removes a consumer, its deliveries and its dead letters.
  ///
  /// The log then drops the messages that no other consumer needs, unless the channel keeps them.
  /// After the channel's last consumer is removed, the log drops none.
  ///
  /// - Returns: whether the consumer existed.
  @discardableResult
  public func removeConsumer(
    _ consumer: Consumer, of channel: Channel
  ) async throws(EngineError) -> Bool {
    try await running().removeConsumer(consumer, of: channel)
  }

  /// A consumer's dead letters in the order of the log, at most `maximumCount` of them.
  ///
  /// - Parameter timetoken: the list begins after this place. Default: nil, with the oldest.
  public func deadLetters(
    of channel: Channel, for consumer: Consumer = .default, after timetoken: Timetoken? = nil,
    maximumCount: Int = 100
  ) async throws(EngineError) -> [DeadLetter] {
    try await reader.read(during: "reading dead letters") { [tables] db in
      try tables.deadLetters(
        of: channel, for: consumer, after: timetoken, maximumCount: maximumCount, in: db)
    }
  }

  /// Returns dead letters to their consumer: ready immediately, with no attempts counted and their
  /// history kept.
  ///
  /// - Parameter timetokens: the dead letters to return. Default: nil, all.
  /// - Returns: how many were returned.
  @discardableResult
  public func redrive(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    try await running().redrive(timetokens, of: channel, for: consumer)
  }

  /// Removes dead letters for good.
  ///
  /// - Parameter timetokens: the dead letters to remove. Default: nil, all.
  /// - Returns: how many were removed.
  @discardableResult
  public func removeDeadLetters(
    _ timetokens: [Timetoken]? = nil, of channel: Channel, for consumer: Consumer = .default
  ) async throws(EngineError) -> Int {
    try await running().removeDeadLetters(timetokens, of: channel, for: consumer)
  }
}

extension ChangeNotifier {
  /// The notifier of an engine, with a file beside the database.
  fileprivate convenience init(
    of reader: SnapshotReader, isLockedOut: @escaping @Sendable () -> Bool
  ) {
    self.init(
      device: NotificationFile(besideDatabase: FilePath(reader.path)),
      probe: {
        let commitNumber = try? reader.readBlocking { db in
          try Int64.fetchOne(db, sql: "SELECT commit_number FROM engine")
        }
        guard let commitNumber else { return nil }
        return DatabaseProbe(commitNumber: commitNumber, isLockedOut: isLockedOut())
      })
  }
}
