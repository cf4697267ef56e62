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

  /// Counts what uses the pool, so that it closes only after the last user.
  package let access: PoolAccess
  let databasePath: FilePath
  package let tables: EngineDatabase
  package let commits: CommitQueue
  /// Called on the writer's queue after each commit with messages, the engine's or the caller's.
  let didCommit: @Sendable () -> Void
  let stateStore: EngineStateStore
  /// Whether the end of a session ends the engine.
  let endsWithSession: @Sendable () -> Bool
  let reserve: DiskReserve?
  let anchors: AnchorRecorder?
  /// Why the engine takes no work; nil while it runs.
  ///
  /// It reports a lock from outside before ``state`` does.
  package let refusal: @Sendable () -> EngineError?
  private let closePool: @Sendable () throws -> Void
  /// The task that does rounds of maintenance, if this engine does them.
  let upkeep = Mutex<Task<Void, Never>?>(nil)
  /// The session socket, if this engine has one of its own.
  let socket = Mutex<EngineSocket?>(nil)
  /// What sends changes through the log of a replicated home.
  let attachedReplica = Mutex<(any EngineReplica)?>(nil)
  let posts: PostQueue
  let rowTurns = RowTurns()
  /// Nil if no backend takes metrics.
  let metrics: EngineMetrics?
  /// The task that sets the gauges.
  let sampling = Mutex<Task<Void, Never>?>(nil)

  /// Runs on a pool that the caller has opened; blocks the calling thread.
  ///
  /// - Parameters:
  ///   - random: used on the writer's queue alone.
  ///   - stateStore: in the state `starting`, if the caller has followed the start; the caller then
  ///     reports `opened`. Default: a new one in the state `running`.
  ///   - recordAnchor: records in the vault how far the database has come. Default: nil, no anchor
  ///     is recorded.
  ///   - isLockedOut: whether the vault has been locked; called before each operation.
  ///   - endsWithSession: whether the end of a session ends the engine.
  ///   - reserve: what a full disk gives back. Default: nil, nothing.
  ///   - closePool: how ``stop()`` closes the pool. Default: it leaves the pool open.
  ///   - reportCommit: called on the writer's queue after each commit of ``commits``.
  package init(
    pool: DatabasePool, time: any TimeSource, random: RandomSource = .unshared(),
    configuration: EngineConfiguration = EngineConfiguration(), isSecured: Bool,
    stateStore: EngineStateStore? = nil, recordAnchor: (@Sendable () async throws -> Void)? = nil,
    isLockedOut: @escaping @Sendable () -> Bool = { false },
    endsWithSession: @escaping @Sendable () -> Bool = { false }, reserve: DiskReserve? = nil,
    closePool: @escaping @Sendable () throws -> Void = {},
    reportCommit: @escaping @Sendable (CommitReport) -> Void = { _ in }
  ) throws(EngineError) {
    let stateStore = stateStore ?? EngineStateStore(.start, .opened)
    let refusal: @Sendable () -> EngineError? = {
      (stateStore.refusal ?? (isLockedOut() ? .vaultLocked : nil)).map(EngineError.notRunning)
    }
    let access = PoolAccess(pool, refusal: refusal)
    let anchors = recordAnchor.map { record in
      AnchorRecorder(
        commitCount: configuration.anchorCommitCount, interval: configuration.anchorInterval,
        logger: configuration.logger, record: { try await access.hold(record) })
    }
    let didCommit: @Sendable () -> Void = { anchors?.didCommit() }
    let metrics = EngineMetrics(configuration)
    let notifier = ChangeNotifier(
      transport: NotificationFile(besideDatabase: FilePath(pool.path)),
      probe: {
        (try? access.readBlocking { try $0.number("SELECT commit_number FROM engine") })
          .map { DatabaseMark(commitNumber: $0, isLockedOut: isLockedOut()) }
      })
    self.access = access
    databasePath = FilePath(pool.path)
    tables = try EngineDatabase(
      pool: pool, time: time, random: random, configuration: configuration,
      notifier: notifier,
      commitCounter: metrics.map { metrics in CommitCounter { metrics.count($0) } })
    commits = CommitQueue(pool) { report in
      reportCommit(report)
      metrics?.record(report)
      didCommit()
    }
    posts = PostQueue(commits)
    self.metrics = metrics
    self.didCommit = didCommit
    self.anchors = anchors
    self.refusal = refusal
    self.stateStore = stateStore
    self.endsWithSession = endsWithSession
    self.reserve = reserve
    self.closePool = closePool
    self.configuration = configuration
    self.isSecured = isSecured
  }

  /// Wakes callers that wait for messages.
  package var notifier: ChangeNotifier { tables.notifier }
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
    try requireRunning()
    try tables.check(messages)
    if messages.isEmpty { return [] }
    guard let replica = try replica() else {
      return try await commits.publish(messages, on: tables)
    }
    let (record, range) = try await posts.post(messages, isAwaited: true, to: replica)
    return Array(try await replica.places(of: record)[range])
  }

  /// Publishes one message, without waiting for its place in the log; see ``post(_:)-([Message])``.
  public func post(_ message: Message) async throws(EngineError) { try await post([message]) }

  /// Publishes messages in the order given, all or none, without waiting for their places in the log.
  ///
  /// On return they are on the disk. On a home that is one of several they are in its outbox then: they get their
  /// places, and reach the other nodes and receivers, when the brokers have them. So this works without a network.
  ///
  /// - Throws: the errors of ``publish(_:)-(Message)``, for all messages together.
  public func post(_ messages: [Message]) async throws(EngineError) {
    guard let replica = try replica() else {
      try await publish(messages)
      return
    }
    try requireRunning()
    try tables.check(messages)
    if !messages.isEmpty { _ = try await posts.post(messages, isAwaited: false, to: replica) }
  }

  /// Counts messages, consumers and dead letters of every channel in one snapshot.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func statistics() async throws(EngineError) -> EngineStatistics {
    try await access.read(during: "counting") { [tables] db in try tables.statistics(db) }
  }

  /// Counts messages, consumers and dead letters of one channel.
  ///
  /// - Returns: nil for a channel that has never had a message, a consumer or a retention.
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func statistics(
    of channel: Channel
  ) async throws(EngineError) -> EngineStatistics.ChannelStatistics? {
    try await access.read(during: "counting") { [tables] db in
      try tables.statistics(db, of: channel).channels.first
    }
  }

  /// Throws if the engine takes no work.
  func requireRunning() throws(EngineError) {
    if let refusal = refusal() { throw refusal }
  }

  /// Runs an operation on the tables in a transaction that it can share.
  ///
  /// - Throws: `stopped`, `vaultLocked`, and the errors of ``CommitQueue/run(during:byteCount:_:)``.
  func commit<Result: Sendable>(
    during operation: String,
    _ write: @escaping @Sendable (EngineDatabase, Database) throws -> Result
  ) async throws(EngineError) -> Result {
    try requireRunning()
    let operate = { @Sendable [tables] (db: Database) throws -> Result in try write(tables, db) }
    do throws(EngineError) {
      return try await commits.run(during: operation, operate)
    } catch {
      guard error.code == .diskFull, reserve?.release() == true else { throw error }
      configuration.warnOfReleasedReserve()
      // The database possibly has to grow before the log can be emptied. After that the log has room.
      try? await truncateWriteAheadLog()
      return try await commits.run(during: operation, operate)
    }
  }

  /// Closes all connections after their reads and writes have ended.
  func closeConnections() async throws(EngineError) {
    try await onBlockingThread("datavault.engine-closing") { () throws(EngineError) in
      self.access.close()
      do {
        try self.closePool()
      } catch {
        throw EngineError(starting: error)
      }
    }
  }
}
