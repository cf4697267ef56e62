/// What every node knows of a message and one of its consumers.
package struct DeliveryState: Sendable, Hashable {
  /// What the consumer is done with it for.
  package enum End: Sendable, Hashable {
    case acknowledged
    case dead
  }

  /// Deliveries that counted and did not end in an acknowledgement.
  package var attemptCount: UInt32 = 0
  /// Set once the consumer is done with it.
  package var end: End?

  package init(attemptCount: UInt32 = 0, end: End? = nil) {
    self.attemptCount = attemptCount
    self.end = end
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
  ///   - delivery: nil if the log has no such message, or no such consumer.
  ///   - earlier: what a settlement of the same lease came to that has counted; the lease can have been ended by the
  ///     owner before its worker settled.
  ///   - epoch: the epoch at this place of the log.
  ///   - mostAttempts: deliveries after which a message becomes a dead letter; nil for no limit.
  package static func decide(
    _ settlement: Settlement, _ delivery: DeliveryState?, earlier: Settlement.Kind?,
    epoch: EpochID?, mostAttempts: UInt32? = nil, rules: SafetyRules = .all
  ) -> Decision {
    if let earlier { return earlier == settlement.outcome.kind ? .repeated : .refused }
    guard let delivery, delivery.end == nil else { return .refused }
    if settlement.epoch != epoch, rules.contains(.fencesEpochs) { return .refused }
    var next = delivery
    switch settlement.outcome {
    case .acknowledged: next.end = .acknowledged
    case .rejected: next.end = .dead
    case .released(countsAttempt: false, _): break
    case .released(countsAttempt: true, _), .leaseEnded:
      next.attemptCount += 1
      if let mostAttempts, next.attemptCount >= mostAttempts { next.end = .dead }
    }
    return .counts(next)
  }
}
