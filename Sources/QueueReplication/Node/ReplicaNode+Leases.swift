internal import GRDB
package import MessagingQueue
internal import Replication
internal import Synchronization

/// Receiving and settling at the owner, which has the leases in memory. Other nodes ask it: ``ReplicaNode/forward(_:)``.
extension ReplicaNode {
  /// How many messages that are leased, delayed or behind their key one receive passes.
  private static var passedAtOnce: Int { 100_000 }

  package func receive(
    from channel: Channel, for consumer: Consumer, maximumCount: Int, lease: Duration
  ) async throws(EngineError) -> [Delivery] {
    try requireRunning()
    let longest = configuration.ownership.longestLease
    guard lease <= longest else {
      throw EngineError(
        .invalidArgument,
        "a lease of \(lease) is longer than the longest of a replicated home, \(longest)",
        hint: "take a shorter lease and extend it")
    }
    guard state.withLock({ $0.ownership.mayLease(now) }) else { return [] }
    while true {
      switch try await leases(from: channel, for: consumer, most: maximumCount, until: lease) {
      case .leased(let deliveries): return deliveries
      case .noConsumer:
        _ = try await perform(.addConsumer(consumer, of: channel, maximumAttempts: nil))
      case .outdated: continue
      case .expired(let bodies): try await write(bodies)
      }
    }
  }

  private enum Leasing: Sendable {
    case leased([Delivery])
    /// The consumer must be added first.
    case noConsumer
    /// The rows are older than what the leases know: read again.
    case outdated
    /// Messages whose time to live has ended must be settled first.
    case expired([Record.Body])
  }

  private func leases(
    from channel: Channel, for consumer: Consumer, most: Int, until time: Duration
  ) async throws(EngineError) -> Leasing {
    let tables = database.engine.tables
    let wallNow = database.engine.clockTicks
    return try await database.engine.access.read(during: "receiving") { [self] db in
      let position = try StoredState.values(db).position
      var candidates: [LeaseTable.Candidate] = []
      var rows: [MessageOrigin: EngineDatabase.Candidate] = [:]
      var expired: [MessageOrigin] = []
      var orderingKeys: Set<String> = []
      var passedCount = 0
      let isKnown = try tables.candidates(of: channel, for: consumer, in: db) { row in
        passedCount += 1
        guard let origin = try origin(of: row.timetoken, db) else { return true }
        let key = LeaseTable.Key(consumer: consumer.name, message: origin)
        let isWaiting = state.withLock { $0.isWaiting(key, row.orderingKey, now) }
        if isWaiting || row.due ?? 0 > wallNow { return passedCount < Self.passedAtOnce }
        if let orderingKey = row.orderingKey, !orderingKeys.insert(orderingKey).inserted {
          return passedCount < Self.passedAtOnce
        }
        if let expires = row.expires, expires <= wallNow {
          expired.append(origin)
        } else {
          candidates.append(
            LeaseTable.Candidate(message: origin, orderingKey: row.orderingKey))
          rows[origin] = row
        }
        return candidates.count < most && passedCount < Self.passedAtOnce
      }
      guard isKnown else { return .noConsumer }
      let leased = state.withLock { state -> [LeaseTable.Held]? in
        // A settlement that these rows lack has freed its message.
        guard state.view.values.position <= position else { return nil }
        guard state.ownership.mayLease(now) else { return [] }
        var random = SystemRandomNumberGenerator()
        return state.leases.lease(
          candidates, to: consumer.name, most: most, until: now + time, using: &random)
      }
      guard let leased else { return .outdated }
      if leased.isEmpty, !expired.isEmpty {
        let epoch = state.withLock { $0.ownership.epoch }
        return epoch.map { .expired(ends(of: expired, for: consumer, epoch: $0)) } ?? .leased([])
      }
      return .leased(
        try deliveries(of: leased, rows, from: channel, for: consumer, tables, db))
    }
  }

  /// What ends messages whose time to live is over, under leases that nobody gets.
  private func ends(
    of expired: [MessageOrigin], for consumer: Consumer, epoch: EpochID
  ) -> [Record.Body] {
    var random = SystemRandomNumberGenerator()
    return expired.prefix(100).map { origin in
      .settlement(
        Settlement(
          consumer: consumer.name, message: origin, lease: LeaseID(using: &random), epoch: epoch,
          outcome: .acknowledged))
    }
  }

  private func deliveries(
    of leased: [LeaseTable.Held], _ rows: [MessageOrigin: EngineDatabase.Candidate],
    from channel: Channel, for consumer: Consumer, _ tables: EngineDatabase, _ db: Database
  ) throws -> [Delivery] {
    var deliveries: [Delivery] = []
    var byteCount = 0
    for held in leased {
      var delivery: Delivery?
      if deliveries.isEmpty || byteCount < database.engine.configuration.maximumReceiveByteCount {
        delivery = try rows[held.key.message].flatMap {
          try tables.delivery(
            $0, of: channel, for: consumer, secret: held.lease.bytes, in: db)
        }
      }
      if let delivery {
        byteCount += delivery.payload.count
        deliveries.append(delivery)
      } else {
        // Nobody has learned of this lease.
        state.withLock { $0.leases.remove(held.lease) }
      }
    }
    return deliveries
  }

  private func origin(of timetoken: Timetoken, _ db: Database) throws -> MessageOrigin? {
    let select = try EngineStatement(
      db, "SELECT origin FROM replication_origin WHERE timetoken = ?")
    return try select.first(timetoken.rawValue) { $0.bytes(at: 0) }.map {
      try MessageOrigin(decoding: $0)
    }
  }

  // MARK: Settling

  package func settle(
    _ tokens: [LeaseToken], _ settlement: MessagingQueue.Settlement
  ) async throws(EngineError) -> MessagingQueue.Settlement.Outcome {
    try requireRunning()
    if case .extension(let lease) = settlement { return extend(tokens, by: lease) }
    var outcome = MessagingQueue.Settlement.Outcome()
    var waits: [(token: LeaseToken, name: RecordNumber)] = []
    let (decided, bodies) = state.withLock { $0.decide(tokens, settlement) }
    let names = try await write(bodies) { [self] names in
      for name in names { results.expect(name) }
      state.withLock { state in
        for (name, body) in zip(names, bodies) {
          guard case .settlement(let record) = body else { continue }
          state.begin(record, as: name)
          if case .release(let delay, _, _) = settlement, delay > .zero {
            state.delays[record.key] = now + delay
          }
        }
      }
    }
    var next = names[...]
    for (token, decision) in zip(tokens, decided) {
      switch decision {
      case .write: if let name = next.popFirst() { waits.append((token, name)) }
      case .wait(let name): waits.append((token, name))
      case .unknown:
        if try await !hasCounted(token, settlement) { outcome.unknown.append(token) }
      }
    }
    for (token, name) in waits {
      switch await results.result(of: name) {
      case .settled(.counts(let delivery)):
        if delivery.end == .dead, case .release = settlement { outcome.deadLettered.append(token) }
      case .settled(.repeated): break
      case .some: outcome.unknown.append(token)
      case nil:
        // Another caller has settled it at the same time, or the owner has ended the lease.
        try requireRunning()
        if try await !hasCounted(token, settlement) { outcome.unknown.append(token) }
      }
    }
    return outcome
  }

  private func extend(
    _ tokens: [LeaseToken], by lease: Duration
  ) -> MessagingQueue.Settlement.Outcome {
    let until = now + min(lease, configuration.ownership.longestLease)
    let unknown = state.withLock { state in
      guard state.ownership.mayLease(now) else { return tokens }
      return tokens.filter { !state.leases.extend($0.leaseID, until: until) }
    }
    return MessagingQueue.Settlement.Outcome(unknown: unknown)
  }

  /// Whether the same settlement of this lease has counted.
  private func hasCounted(
    _ token: LeaseToken, _ settlement: MessagingQueue.Settlement
  ) async throws(EngineError) -> Bool {
    let kind = settlement.outcome.kind
    return try await database.engine.access.read(during: settlement.operation) { db in
      try db.number("SELECT kind FROM replication_lease WHERE lease = ?", token.secret)
        == Int64(kind.rawValue)
    }
  }

  /// Writes the end of leases that no worker has answered, before their messages are leased again.
  func endLeases() async throws(EngineError) {
    let bodies = state.withLock { state -> [Record.Body] in
      guard let epoch = state.ownership.epoch else { return [] }
      return state.leases.ended(now).map { held in
        .settlement(
          Settlement(
            consumer: held.key.consumer, message: held.key.message, lease: held.lease, epoch: epoch,
            outcome: .leaseEnded))
      }
    }
    _ = try await write(bodies) { [self] names in
      state.withLock { state in
        for (name, body) in zip(names, bodies) {
          if case .settlement(let settlement) = body { state.begin(settlement, as: name) }
        }
      }
    }
  }
}

extension NodeState {
  /// What to do for each token, and the settlements to write.
  mutating func decide(
    _ tokens: [LeaseToken], _ settlement: MessagingQueue.Settlement
  ) -> ([LeaseTable.Decision], [Record.Body]) {
    guard let epoch = ownership.epoch else { return (tokens.map { _ in .unknown }, []) }
    var bodies: [Record.Body] = []
    let decisions = tokens.map { token in
      let decision = leases.decide(token.leaseID)
      if case .write(let key) = decision {
        bodies.append(
          .settlement(
            Settlement(
              consumer: key.consumer, message: key.message, lease: token.leaseID, epoch: epoch,
              outcome: settlement.outcome)))
      }
      return decision
    }
    return (decisions, bodies)
  }

  /// Notes that a settlement is in the outbox: its message is not leased before it is read back.
  mutating func begin(_ settlement: Settlement, as name: RecordNumber) {
    leases.begin(settlement.key, as: name)
  }

  /// Whether a message cannot be leased yet.
  func isWaiting(_ key: LeaseTable.Key, _ orderingKey: String?, _ now: Duration) -> Bool {
    leases.isWaiting(key, orderingKey: orderingKey) || delays[key].map { $0 > now } ?? false
  }
}

extension Replication.Settlement {
  var key: LeaseTable.Key { LeaseTable.Key(consumer: consumer, message: message) }
}

extension LeaseToken {
  var leaseID: LeaseID {
    LeaseID(secret.reduce(UInt128(0)) { $0 << 8 | UInt128($1) })
  }
}

extension MessagingQueue.Settlement {
  /// What the log has of it; an extension has nothing.
  var outcome: Replication.Settlement.Outcome {
    switch self {
    case .acknowledgement, .extension: .acknowledged
    case .release(_, let reason, let countsAttempt):
      .released(countsAttempt: countsAttempt, reason: reason ?? "")
    case .rejection(let reason): .rejected(reason: reason)
    }
  }
}
