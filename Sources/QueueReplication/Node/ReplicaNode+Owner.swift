internal import GRDB
internal import MessagingQueue
internal import Replication
internal import Synchronization

/// What the owner does for the workers of all nodes: its leases are in memory.
extension ReplicaNode {
  /// How many messages that are leased or behind their key one receive passes.
  private static var passedAtOnce: Int { 100_000 }

  private enum Leasing: Sendable {
    case leased([LeasedMessage])
    /// The rows are older than what the leases know: read again.
    case outdated
    /// Messages whose time to live has ended must be settled first.
    case expired([MessageOrigin])
  }

  /// Leases messages of a consumer that the log has.
  ///
  /// - Parameter time: at most the longest lease.
  func leaseHere(
    from channel: Channel, for consumer: Consumer, most: Int, until time: Duration
  ) async throws(EngineError) -> [LeasedMessage] {
    while let epoch = state.withLock({ $0.ownership.mayLease(now) ? $0.ownership.epoch : nil }) {
      switch try await leaseOnce(from: channel, for: consumer, most: most, until: time) {
      case .leased(let messages): return messages
      case .outdated: continue
      case .expired(let origins): try await end(origins, for: consumer, in: epoch)
      }
    }
    return []
  }

  private func leaseOnce(
    from channel: Channel, for consumer: Consumer, most: Int, until time: Duration
  ) async throws(EngineError) -> Leasing {
    let tables = database.engine.tables
    let wallNow = database.engine.clockTicks
    let mostBytes = Int64(database.engine.configuration.maximumReceiveByteCount)
    return try await database.engine.access.read(during: "receiving") { [self] db in
      let position = try StoredState.values(db).position
      var candidates: [LeaseTable.Candidate] = []
      var attempts: [MessageOrigin: (timetoken: Timetoken, attempt: UInt32)] = [:]
      var expired: [MessageOrigin] = []
      var orderingKeys: Set<String> = []
      var (passedCount, byteCount) = (0, Int64(0))
      try tables.candidates(of: channel, for: consumer, in: db) { row in
        passedCount += 1
        let goesOn = passedCount < Self.passedAtOnce
        if let orderingKey = row.orderingKey, orderingKeys.contains(orderingKey) { return goesOn }
        guard let origin = try Self.origin(of: row.timetoken, db) else { return goesOn }
        let key = LeaseTable.Key(consumer: consumer.name, message: origin)
        let isWaiting = state.withLock { $0.leases.isWaiting(key, orderingKey: row.orderingKey) }
        if let orderingKey = row.orderingKey { orderingKeys.insert(orderingKey) }
        if isWaiting { return goesOn }
        if let expires = row.expires, expires <= wallNow {
          expired.append(origin)
          return goesOn
        }
        byteCount += row.payloadByteCount
        if !candidates.isEmpty, byteCount > mostBytes { return false }
        candidates.append(LeaseTable.Candidate(message: origin, orderingKey: row.orderingKey))
        attempts[origin] = (row.timetoken, UInt32(clamping: row.attemptCount + 1))
        return goesOn && candidates.count < most
      }
      let leased = state.withLock { state -> [LeaseTable.Held]? in
        // A settlement that these rows lack has freed its message.
        guard state.view.values.position <= position else { return nil }
        guard state.ownership.mayLease(now) else { return [] }
        var random = SystemRandomNumberGenerator()
        return state.leases.lease(
          candidates, to: consumer.name, most: most, until: now + time, using: &random)
      }
      guard let leased else { return .outdated }
      if leased.isEmpty, !expired.isEmpty { return .expired(expired) }
      return .leased(
        leased.compactMap { held in
          attempts[held.key.message].map { found in
            LeasedMessage(
              message: held.key.message, timetoken: found.timetoken.rawValue, lease: held.lease,
              attempt: found.attempt)
          }
        })
    }
  }

  /// Settles messages whose time to live has ended, under leases that no worker gets.
  private func end(
    _ expired: [MessageOrigin], for consumer: Consumer, in epoch: EpochID
  ) async throws(EngineError) {
    var random = SystemRandomNumberGenerator()
    let settlements = expired.prefix(100).map { origin in
      Settlement(
        consumer: consumer.name, message: origin, lease: LeaseID(using: &random), epoch: epoch,
        outcome: .acknowledged)
    }
    let names = try await write(settlements.map { .settlement($0) }) { [results] names in
      for name in names { results.expect(name) }
    }
    for name in names { _ = try await result(of: name, during: "receiving") }
  }

  private static func origin(of timetoken: Timetoken, _ db: Database) throws -> MessageOrigin? {
    let select = try EngineStatement(
      db, "SELECT origin FROM replication_origin WHERE timetoken = ?")
    return try select.first(timetoken.rawValue) { try MessageOrigin(decoding: $0.bytes(at: 0)) }
  }

  // MARK: Settling

  /// Writes settlements, and waits until they are read back.
  func settle(
    _ settlements: [LeaseSettlement], in epoch: EpochID
  ) async throws(EngineError) -> [SettlementResult] {
    let wallNow = database.engine.clockTicks
    let (decisions, records) = state.withLock { $0.decide(settlements, in: epoch, wallNow) }
    let names = try await write(records.map { .settlement($0) }) { [self] names in
      for name in names { results.expect(name) }
      begin(records, as: names)
    }
    // One for all: their records are read back together.
    let end = now + configuration.patience
    var next = names[...]
    var answers: [SettlementResult] = []
    for (settlement, decision) in zip(settlements, decisions) {
      let name: RecordNumber? =
        switch decision {
        case .write: next.popFirst()
        case .wait(let name): name
        case .unknown: nil
        }
      if let result = await result(of: name, until: end) {
        answers.append(result)
      } else {
        answers.append(try await answer(again: settlement, in: epoch))
      }
    }
    return answers
  }

  /// What a settlement has come to; nil if that is not known here, or its lease is not.
  private func result(of name: RecordNumber?, until end: Duration) async -> SettlementResult? {
    guard let name else { return nil }
    return switch await results.result(of: name, until: end) {
    case .settled(.counts(let delivery)): delivery.end == .dead ? .dead : .done
    case .settled(.repeated): .done
    case .some: .lost
    case nil: nil
    }
  }

  /// Notes that settlements are in the outbox: their messages are not leased before they are read back.
  private func begin(_ records: [Settlement], as names: [RecordNumber]) {
    state.withLock { state in
      for (name, record) in zip(names, records) { state.leases.begin(record.lease, as: name) }
    }
  }

  /// What the tables tell of a settlement.
  private func answer(
    again settlement: LeaseSettlement, in epoch: EpochID
  ) async throws(EngineError) -> SettlementResult {
    // It was settled before, or at the same time, or the owner has ended the lease.
    let canStillCount = state.withLock { state in
      state.end != nil || state.leases.key(of: settlement.lease) != nil
        || state.ownership.epoch != epoch && state.view.values.epoch?.epoch == epoch
    }
    if try await hasCounted(settlement) { return .done }
    return canStillCount ? .unknown : .lost
  }

  /// Whether the same settlement of this lease has counted.
  func hasCounted(_ settlement: LeaseSettlement) async throws(EngineError) -> Bool {
    try await database.engine.access.read(during: "settling") { db in
      try db.number(
        "SELECT kind FROM replication_lease WHERE lease = ?", settlement.lease.bytes)
        == Int64(settlement.outcome.kind.rawValue)
    }
  }

  /// Lets leases end later.
  ///
  /// - Returns: whether each lease is still held.
  /// - Throws: `busy` if that cannot be told now.
  func extendHere(_ leases: [LeaseID], by time: Duration) throws(EngineError) -> [Bool] {
    let until = now + min(time, configuration.ownership.longestLease)
    let kept = state.withLock { state in
      state.ownership.mayLease(now)
        ? leases.map { state.leases.extend($0, until: until, now: now) } : nil
    }
    guard let kept else { throw Self.notExtended }
    return kept
  }

  static var notExtended: EngineError {
    EngineError(
      .busy, "extending: the owner of the leases does not answer now",
      hint: "call it again before the leases end")
  }

  /// Writes the end of leases that no worker has answered, before their messages are leased again.
  func endLeases() async throws(EngineError) {
    let records = state.withLock { state -> [Settlement] in
      guard let epoch = state.ownership.epoch else { return [] }
      return state.leases.ended(now).map { held in
        Settlement(
          consumer: held.key.consumer, message: held.key.message, lease: held.lease, epoch: epoch,
          outcome: .leaseEnded)
      }
    }
    try await write(records.map { .settlement($0) }) { [self] in begin(records, as: $0) }
  }
}

extension NodeState {
  /// What to do for each settlement, and the records to write.
  fileprivate func decide(
    _ settlements: [LeaseSettlement], in epoch: EpochID, _ wallNow: Int64
  ) -> ([LeaseTable.Decision], [Settlement]) {
    guard epoch == ownership.epoch else { return (settlements.map { _ in .unknown }, []) }
    let decisions = settlements.map { leases.decide($0.lease) }
    let records = zip(settlements, decisions).compactMap { settlement, decision in
      if case .write(let key) = decision {
        Settlement(
          consumer: key.consumer, message: key.message, lease: settlement.lease, epoch: epoch,
          outcome: settlement.outcome, due: settlement.due(wallNow))
      } else {
        nil as Settlement?
      }
    }
    return (decisions, records)
  }
}

extension LeaseSettlement {
  /// 366 days, as on a home that is the only one.
  private static let longestDelayMilliseconds: UInt64 = 366 * 86_400_000

  /// When a message that is released for a while can be leased again, on the owner's wall clock.
  fileprivate func due(_ now: Int64) -> Int64? {
    guard case .released = outcome, delayMilliseconds > 0 else { return nil }
    return now + Int64(min(delayMilliseconds, Self.longestDelayMilliseconds)) * 10_000
  }
}
