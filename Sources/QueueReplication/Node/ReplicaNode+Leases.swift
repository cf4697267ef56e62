internal import Foundation
internal import GRDB
package import MessagingQueue
internal import Replication
internal import Synchronization

/// Receiving and settling: here if this process is the owner, else at the owner.
extension ReplicaNode {
  package func receive(
    from channel: Channel, for consumer: Consumer, maximumCount: Int, lease: Duration
  ) async throws(EngineError) -> [Delivery] {
    try requireRunning()
    let requested = now
    let longest = configuration.ownership.longestLease
    guard lease <= longest else {
      throw EngineError(
        .invalidArgument,
        "a lease of \(lease) is longer than the longest of a replicated home, \(longest)",
        hint: "take a shorter lease and extend it")
    }
    if try await !database.engine.hasConsumer(consumer, of: channel) {
      _ = try await perform(.addMissingConsumer(consumer, of: channel))
    }
    let most = min(maximumCount, Request.mostElements)
    let isOwner = state.withLock { $0.ownership.epoch != nil }
    let leased =
      isOwner
      ? try await leaseHere(from: channel, for: consumer, most: most, until: lease)
      : try await requestLeases(from: channel, for: consumer, most: most, lease)
    if leased.isEmpty { return [] }
    guard try await isApplied(leased, until: requested + lease / 2) else {
      giveBack(leased)
      return []
    }
    return try await deliveries(of: leased, from: channel, for: consumer)
  }

  /// The messages that were leased, which are applied here.
  private func deliveries(
    of leased: [LeasedMessage], from channel: Channel, for consumer: Consumer
  ) async throws(EngineError) -> [Delivery] {
    let tables = database.engine.tables
    return try await database.engine.access.read(during: "receiving") { db in
      try leased.compactMap { message in
        guard let timetoken = try Self.timetoken(of: message.message, db) else { return nil }
        return try tables.delivery(
          of: timetoken, from: channel, for: consumer, attempt: Int(message.attempt),
          secret: message.lease.bytes, in: db)
      }
    }
  }

  /// Waits until this node has applied the messages, which the owner has.
  ///
  /// - Returns: whether it has before `end`, and before the task is cancelled.
  private func isApplied(
    _ leased: [LeasedMessage], until end: Duration
  ) async throws(EngineError) -> Bool {
    let last = leased.map(\.timetoken).max() ?? 0
    while state.withLock({ $0.view.values.highWater }) < last {
      try requireRunning()
      if now >= end || Task.isCancelled { return false }
      try? await Task.sleep(for: .milliseconds(2))
    }
    return true
  }

  /// Lets messages be leased again that this node is too far behind to deliver.
  private func giveBack(_ leased: [LeasedMessage]) {
    let settlements = leased.map {
      LeaseSettlement(
        lease: $0.lease,
        outcome: .released(countsAttempt: false, reason: "its node is behind the log"))
    }
    // Also for a caller who does not wait any more.
    Task { try? await settle(settlements) }
  }

  package func settle(
    _ tokens: [LeaseToken], _ settlement: MessagingQueue.Settlement
  ) async throws(EngineError) -> MessagingQueue.Settlement.Outcome {
    try requireRunning()
    var outcome = MessagingQueue.Settlement.Outcome()
    var rest = tokens[...]
    while !rest.isEmpty {
      let next = Array(rest.prefix(Request.mostElements))
      rest = rest.dropFirst(next.count)
      if case .extension(let lease) = settlement {
        let kept = try await extend(next.map(\.leaseID), by: lease)
        outcome.unknown += zip(next, kept).filter { !$1 }.map(\.0)
        continue
      }
      let results = try await settle(next.map { settlement.record(of: $0) })
      for (token, result) in zip(next, results) {
        switch result {
        case .done: break
        case .dead: if case .release = settlement { outcome.deadLettered.append(token) }
        case .lost: outcome.unknown.append(token)
        case .unknown: throw Self.unknownOutcome(of: settlement.operation)
        }
      }
    }
    return outcome
  }

  private func settle(
    _ settlements: [LeaseSettlement]
  ) async throws(EngineError) -> [SettlementResult] {
    guard let epoch = state.withLock({ $0.ownership.epoch }) else {
      return try await requestSettlements(settlements)
    }
    return try await settle(settlements, in: epoch)
  }

  private func extend(
    _ leases: [LeaseID], by lease: Duration
  ) async throws(EngineError) -> [Bool] {
    if state.withLock({ $0.ownership.epoch == nil }) {
      return try await requestExtensions(leases, by: lease)
    }
    return try extendHere(leases, by: lease)
  }

  static func timetoken(of origin: MessageOrigin, _ db: Database) throws -> Timetoken? {
    try db.number("SELECT timetoken FROM replication_origin WHERE origin = ?", origin.bytes)
      .map(Timetoken.init(unchecked:))
  }
}

extension LeaseToken {
  var leaseID: LeaseID { LeaseID(secret.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }) }
}

extension MessagingQueue.Settlement {
  /// What the owner is told of a lease; an extension is told otherwise.
  fileprivate func record(of token: LeaseToken) -> LeaseSettlement {
    switch self {
    case .acknowledgement, .extension:
      LeaseSettlement(lease: token.leaseID, outcome: .acknowledged)
    case .release(let delay, let reason, let countsAttempt):
      LeaseSettlement(
        lease: token.leaseID, delayMilliseconds: delay.wholeMilliseconds,
        outcome: .released(countsAttempt: countsAttempt, reason: reason ?? ""))
    case .rejection(let reason):
      LeaseSettlement(lease: token.leaseID, outcome: .rejected(reason: reason))
    }
  }
}

extension Duration {
  /// Rounded up; 0 for a negative one.
  var wholeMilliseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard self > .zero else { return 0 }
    return UInt64(seconds) * 1000
      + UInt64((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
