/// What every node knows of a message and one of its consumers.
package struct DeliveryState: Sendable, Hashable {
  /// What the consumer is done with it for.
  package enum End: Sendable, Hashable {
    case acknowledged
    case dead
  }

  /// Deliveries that counted and did not end in an acknowledgement.
  package var attemptCount: UInt32 = 0
  /// The last settlements that counted, the oldest first, at most ``mostResults``.
  package private(set) var results: [Result] = []
  /// Set once the consumer is done with it.
  package var end: End?

  /// A settlement that counted.
  package struct Result: Sendable, Hashable {
    package let lease: LeaseID
    package let kind: Settlement.Kind
  }

  /// How many settlements are remembered, so that a worker that repeats one is answered with "done".
  package static let mostResults = 16

  package init() {}

  /// Whether this settlement has counted.
  ///
  /// The same lease is not enough: the owner can have ended it before its worker settled.
  package func hasCounted(_ settlement: Settlement) -> Bool {
    results.contains(Result(lease: settlement.lease, kind: settlement.outcome.kind))
  }

  mutating func note(_ settlement: Settlement) {
    results.append(Result(lease: settlement.lease, kind: settlement.outcome.kind))
    if results.count > Self.mostResults { results.removeFirst() }
  }
}

/// Decides what a settlement in the log does, the same on every node.
package enum SettlementRule {
  package enum Decision: Sendable, Hashable {
    case counts(DeliveryState)
    /// It has counted before: the answer is "done" again.
    case repeated
    /// Its lease is another's by now, or its epoch has ended, or the message is unknown. It changes nothing.
    case refused
  }

  /// - Parameters:
  ///   - delivery: nil if the log has no such message.
  ///   - epoch: the epoch at this place of the log.
  ///   - mostAttempts: deliveries after which a message becomes a dead letter; nil for no limit.
  package static func decide(
    _ settlement: Settlement, _ delivery: DeliveryState?, epoch: EpochID?,
    mostAttempts: UInt32? = nil,
    rules: SafetyRules = .all
  ) -> Decision {
    guard let delivery else { return .refused }
    if delivery.hasCounted(settlement) { return .repeated }
    if delivery.results.contains(where: { $0.lease == settlement.lease }) { return .refused }
    if delivery.end != nil { return .refused }
    if settlement.epoch != epoch, rules.contains(.fencesEpochs) { return .refused }
    var next = delivery
    next.note(settlement)
    switch settlement.outcome {
    case .acknowledged: next.end = .acknowledged
    case .rejected: next.end = .dead
    case .released(let countsAttempt, _):
      if countsAttempt { next.attemptCount += 1 }
      if let mostAttempts, next.attemptCount >= mostAttempts { next.end = .dead }
    case .leaseEnded:
      next.attemptCount += 1
      if let mostAttempts, next.attemptCount >= mostAttempts { next.end = .dead }
      if let mostAttempts, next.attemptCount >= mostAttempts { next.end = .dead }
    }
    return .counts(next)
  }
}
