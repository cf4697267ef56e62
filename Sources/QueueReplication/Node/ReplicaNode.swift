package import FileLayer
internal import Logging
package import MessagingQueue
package import Replication
internal import Synchronization
internal import VaultCrypto

/// A member of a shard: brings what its engine is asked for into the log, and the log into its database.
///
/// Three loops work while ``run()`` does: one reads and applies, one appends, one says what the node has to say of
/// itself. Decisions are those of the module `Replication`; this type gives them time, rows and a log.
package final class ReplicaNode: Sendable {
  let database: ShardDatabase
  let configuration: NodeConfiguration
  let state: Mutex<NodeState>
  /// Callers that wait until a record is applied here.
  let results: PendingResults<RecordResult>
  let outboxChanged = WakeSignal()
  /// How other members are asked; nil for a node that is alone.
  let exchange: RequestExchange?
  private let reader: LogReader
  private let appender: LogAppender
  private let time: any TimeSource

  /// Begins a process on a member's database; from then on its engine goes through the log.
  ///
  /// - Parameters:
  ///   - engine: on a home whose tables ``ReplicationSchema`` has made.
  ///   - member: the database's member id.
  ///   - members: asks other members through the brokers; nil for a node that is alone.
  /// - Throws: `damaged`, `newerVersion`; the errors of the engine.
  package static func start(
    _ engine: MessagingEngine, member: MemberID, ring: borrowing KeyRing,
    log: any ReplicatedLog, members: (any MemberExchange)?, time: any TimeSource,
    configuration: NodeConfiguration = NodeConfiguration()
  ) async throws -> ReplicaNode {
    let database = ShardDatabase(
      engine, member: member, ring: RingSeal(ring, random: .unshared()),
      newestKey: ring.keyNumbers.upperBound,
      syncInterval: configuration.syncInterval, serverTables: configuration.serverTables,
      now: { time.sinceBoot })
    let view = try await database.start()
    let exchange = members.map { members in
      RequestExchange(
        members: members,
        seal: SharedRequestSeal(RequestSeal(ring, member: member, random: .unshared())))
    }
    let node = ReplicaNode(database, view, log, exchange, time, configuration)
    try node.serveRequests()
    engine.attach(node)
    return node
  }

  private init(
    _ database: ShardDatabase, _ view: ShardDatabase.View, _ log: any ReplicatedLog,
    _ exchange: RequestExchange?, _ time: any TimeSource, _ configuration: NodeConfiguration
  ) {
    self.database = database
    self.configuration = configuration
    self.time = time
    results = PendingResults { time.sinceBoot }
    self.exchange = exchange
    reader = LogReader(log)
    appender = LogAppender(log)
    state = Mutex(NodeState(view, configuration, now: time.sinceBoot))
  }

  var now: Duration { time.sinceBoot }

  /// Works until the task is cancelled, or the log and the database contradict each other.
  ///
  /// - Throws: ``ReplicationError`` when the node must stop; the errors of the engine.
  package func run() async throws {
    do {
      try await withThrowingTaskGroup { group in
        group.addTask { try await self.applyLog() }
        group.addTask { await self.appendOutbox() }
        group.addTask { try await self.sayWhatIsDue() }
        _ = try await group.next()
        group.cancelAll()
      }
    } catch {
      end(error as? ReplicationError)
      if !Task.isCancelled { throw error }
    }
    end(nil)
  }

  /// The last record that is applied here.
  package var position: UInt64 { state.withLock { $0.view.values.position } }

  /// Whether this process leases now.
  package var isOwner: Bool { state.withLock { $0.ownership.mayLease(now) } }

  /// Lets all callers that wait return.
  private func end(_ error: ReplicationError?) {
    state.withLock { $0.end = $0.end ?? error ?? .stopped }
    results.close()
  }

  /// Takes this member out of its shard, once everything that is in its outbox is in the log.
  ///
  /// Afterwards stop ``run()``, and make the home the only one with ``MemberNode/leaveAlone(_:ring:serverTables:)``.
  ///
  /// - Throws: `outcomeUnknown` if that takes longer; the errors of the engine.
  package func leave(within limit: Duration) async throws(EngineError) {
    let end = now + limit
    try await wait(until: end) { [database] () async throws(EngineError) in
      try await database.isOutboxEmpty()
    }
    database.leaves.store(true, ordering: .relaxed)
    try await write([.leave(database.member)])
    try await wait(until: end) { [self] in
      state.withLock { $0.view.members[database.member] == nil }
    }
  }

  private func wait(
    until end: Duration, _ isDone: () async throws(EngineError) -> Bool
  ) async throws(EngineError) {
    while try await !isDone() {
      try requireRunning()
      if now >= end { throw Self.unknownOutcome(of: "leaving the cluster") }
      try? await Task.sleep(for: .milliseconds(20))
    }
  }

  // MARK: The loops

  private func applyLog() async throws {
    var pause = Duration.milliseconds(50)
    var failures = FailureLog("the log cannot be read", configuration.logger)
    while !Task.isCancelled {
      let place = state.withLock { $0.view.readPlace }
      let batch: Applier.Batch
      do {
        batch = try await reader.read(at: place, mostBytes: 4 << 20, wait: configuration.readWait)
        pause = .milliseconds(50)
        failures.end()
      } catch {
        failures.note(error)
        try? await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(2))
        continue
      }
      try await apply(batch)
    }
  }

  private func apply(_ batch: Applier.Batch) async throws {
    let taken: ShardDatabase.Taken
    do {
      taken = try await database.take(batch)
    } catch {
      try noteUnapplied(error)
      try? await Task.sleep(for: .seconds(1))
      return
    }
    let trimmed = state.withLock { state in
      state.take(taken, batch, now: now)
      let through = state.view.values.trimmedThrough
      let isDue = through > state.trimmedThrough && now >= state.trimsAgainAt
      return state.ownership.epoch != nil && isDue ? through : 0
    }
    results.rename(taken.renamed)
    for (name, result) in taken.results { results.resolve(name, result) }
    if state.withLock({ $0.relay.hasMore }) { outboxChanged.set() }
    if let alarm = taken.alarm {
      let error = ReplicationError(alarm)
      configuration.logger.critical("replication stops: \(error)")
      throw error
    }
    if trimmed > 0 {
      do {
        try await appender.trim(through: trimmed)
        state.withLock { $0.trimmedThrough = trimmed }
      } catch {
        configuration.logger.warning("the log cannot be trimmed: \(error)")
        state.withLock { $0.trimsAgainAt = now + .seconds(60) }
      }
    }
  }

  /// A part of the log was not applied: the next read begins at the same place, and finds out what was.
  ///
  /// - Throws: the error, if that does not help.
  private func noteUnapplied(_ error: any Error) throws {
    guard let error = error as? EngineError else { throw error }
    if let cause = error.underlying as? ReplicationError { throw cause }
    guard [.diskFull, .busy, .inputOutput, .outcomeUnknown].contains(error.code) else {
      throw error
    }
    configuration.logger.error("the log cannot be applied: \(error)")
    state.withLock { $0.unapplied = error }
    // A full disk can stay full for long: callers need not wait for that.
    if error.code == .diskFull { results.endAll() }
    if error.code == .outcomeUnknown { state.withLock { $0.startAgain(configuration) } }
  }

  private func appendOutbox() async {
    var failures = FailureLog("the outbox cannot be sent", configuration.logger)
    while !Task.isCancelled {
      await outboxChanged.wait()
      var records: [SealedRecord] = []
      do {
        repeat {
          records = []
          records = try await database.records { [self] rows in
            try state.withLock { try $0.relay.next(rows, $0.horizon, now) }
          }
          if records.isEmpty { break }
          try await appender.append(records)
          failures.end()
        } while !Task.isCancelled && state.withLock({ $0.relay.hasMore })
      } catch {
        failures.note(error)
        state.withLock { $0.relay.noteFailed(records, $0.horizon, now) }
        try? await Task.sleep(for: .milliseconds(200))
        outboxChanged.set()
      }
    }
  }

  private func sayWhatIsDue() async throws {
    var failures = FailureLog("the outbox cannot be written", configuration.logger)
    let interval = min(configuration.ownership.heartbeatInterval / 4, .milliseconds(250))
    while !Task.isCancelled {
      do throws(EngineError) {
        try await writeWhatIsDue()
        failures.end()
      } catch {
        if [.stopped, .vaultLocked].contains(error.code) { throw error }
        // What was decided and not written is decided again.
        failures.note(error)
        state.withLock { $0.startAgain(configuration) }
      }
      // What waits for an answer of the log is sent again after a while.
      outboxChanged.set()
      try? await Task.sleep(for: interval)
    }
  }

  private func writeWhatIsDue() async throws(EngineError) {
    results.expire()
    try await endLeases()
    let bodies = state.withLock { $0.due(configuration, member: database.member, now: now) }
    try await write(bodies)
    try await report()
  }

  private func report() async throws(EngineError) {
    let newestKey = database.newestKey
    let view = state.withLock { state in
      state.isReportDue(configuration, member: database.member, newestKey: newestKey, now: now)
        ? state.view : nil
    }
    guard let view else { return }
    let body = Record.Body.report(
      database.member, safe: view.safe, view.safeValues.digest, newestKey: newestKey,
      oldestKey: try await database.oldestKey())
    _ = try await write([body]) { [self] names in
      state.withLock { $0.report = (names[0], now) }
    }
    state.withLock { $0.reportedAt = now }
  }

  /// Writes records of this node, and has them appended.
  ///
  /// A power cut can lose them. Who waits for one waits until it was read back, and applied durably.
  @discardableResult
  func write(
    _ bodies: [Record.Body], noting: @escaping @Sendable ([RecordNumber]) -> Void = { _ in }
  ) async throws(EngineError) -> [RecordNumber] {
    let names = try await database.write(bodies, isDurable: false, noting: noting)
    outboxChanged.set()
    return names
  }

  /// Throws if the node takes no work any more.
  func requireRunning() throws(EngineError) {
    if let end = state.withLock({ $0.end }) {
      throw EngineError(.stopped, end.message, hint: end.hint, underlying: end)
    }
  }
}
