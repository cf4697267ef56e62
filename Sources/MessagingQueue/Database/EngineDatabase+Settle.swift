internal import FileLayer
internal import GRDB

extension EngineDatabase {
  /// Settles deliveries in one of the ways below.
  func settle(
    _ tokens: [LeaseToken], _ settlement: Settlement, in db: Database
  ) throws -> Settlement.Outcome {
    switch settlement {
    case .acknowledgement: Settlement.Outcome(unknown: try acknowledge(tokens, in: db))
    case .release(let delay, let reason, let countsAttempt):
      try release(tokens, after: delay, reason: reason, countsAttempt: countsAttempt, in: db)
    case .rejection(let reason):
      Settlement.Outcome(unknown: try reject(tokens, reason: reason, in: db))
    case .extension(let lease):
      Settlement.Outcome(unknown: try extend(tokens, by: lease, in: db))
    }
  }

  /// Acknowledges deliveries: a consumer never gets their messages again.
  ///
  /// A message leaves the log if no other consumer needs it, unless its channel keeps it.
  ///
  /// - Returns: the tokens that settle nothing; all others are settled.
  func acknowledge(_ tokens: [LeaseToken], in db: Database) throws -> [LeaseToken] {
    var acknowledgements: [Int64: Acknowledgement] = [:]
    let unknown = try settle(tokens, db) { consumer, leased in
      if leased.orderingKey != nil { notifier.announceReturn(to: consumer.channel) }
      return acknowledgements[consumer.id, default: Acknowledgement(consumer)]
        .add(leased.timetoken, orderingKey: leased.orderingKey)
    }
    for acknowledgement in acknowledgements.values { try acknowledgement.finish(db) }
    commitCounter?.note { $0.acknowledged += tokens.count - unknown.count }
    return unknown
  }

  /// Returns delivered messages to their consumer, after `delay` or when the machine restarts.
  ///
  /// A message that was delivered as often as its consumer allows becomes a dead letter, unless its
  /// attempt does not count.
  ///
  func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil,
    countsAttempt: Bool = true, in db: Database
  ) throws -> Settlement.Outcome {
    let reason = reason ?? DeliveryFailure.released
    let boot = delay == .zero ? nil : bootNumber
    let until = delay == .zero ? nil : nanosecondsSinceBoot + delay.wholeNanoseconds
    let now = WallTime.ticks(of: time.now)
    var dead: [LeaseToken] = []
    let unknown = try settle(tokens, db) { consumer, leased in
      let deliveries = DeliveryTable(consumerID: consumer.id, db: db)
      // Also with a delay: a receiver that waits for the end of the lease learns of an earlier one.
      notifier.announceReturn(to: consumer.channel)
      if countsAttempt, let maximumAttempts = consumer.maximumAttempts,
        leased.attemptCount >= maximumAttempts
      {
        dead.append(leased.token)
        try deliveries.moveToDeadLetters(leased.timetoken, reason: reason, at: now)
        return true
      }
      let failure = DeliveryFailure(attempt: leased.attemptCount, ticks: now, reason: reason)
      try db.run(
        """
        UPDATE delivery
        SET lease = NULL, held_boot = ?, held_until = ?, is_blocked = 0, attempt_count = ?,
          failures = ?
        WHERE consumer_id = ? AND timetoken = ?
        """, boot, until, countsAttempt ? leased.attemptCount : leased.attemptCount - 1,
        countsAttempt ? failure.appended(to: leased.failures) : leased.failures, consumer.id,
        leased.timetoken.rawValue)
      try deliveries.unblock(leased.orderingKey)
      return true
    }
    commitCounter?.note {
      $0.released += tokens.count - unknown.count
      $0.deadLettered += dead.count
    }
    return Settlement.Outcome(unknown: unknown, deadLettered: dead)
  }

  /// Rejects delivered messages: they become dead letters of their consumer, with this reason.
  ///
  /// - Returns: the tokens that settle nothing; all others are settled.
  func reject(
    _ tokens: [LeaseToken], reason: String, in db: Database
  ) throws -> [LeaseToken] {
    let now = WallTime.ticks(of: time.now)
    let unknown = try settle(tokens, db) { consumer, leased in
      try DeliveryTable(consumerID: consumer.id, db: db)
        .moveToDeadLetters(leased.timetoken, reason: reason, at: now)
      if leased.orderingKey != nil { notifier.announceReturn(to: consumer.channel) }
      return true
    }
    commitCounter?.note { $0.deadLettered += tokens.count - unknown.count }
    return unknown
  }

  /// Changes the end of leases to `lease` from now, which can be earlier or later than before.
  ///
  /// - Returns: the tokens whose leases have ended; all others are changed.
  func extend(
    _ tokens: [LeaseToken], by lease: Duration, in db: Database
  ) throws -> [LeaseToken] {
    let now = nanosecondsSinceBoot
    let until = now + lease.wholeNanoseconds
    return try settle(tokens, heldAfter: now, db) { consumer, leased in
      if let end = leased.heldUntil, until < end { notifier.announceReturn(to: consumer.channel) }
      try db.run(
        "UPDATE delivery SET held_until = ? WHERE consumer_id = ? AND timetoken = ?", until,
        consumer.id, leased.timetoken.rawValue)
      return true
    }
  }

  /// A delivery that matches its token.
  private struct Leased {
    let token: LeaseToken
    let attemptCount: Int
    let orderingKey: String?
    let failures: String?
    /// The end of its lease on the boot clock; nil if a receive has ended the lease.
    let heldUntil: Int64?

    var timetoken: Timetoken { token.timetoken }
  }

  /// Runs `settleOne` for each delivery that still matches its token, and returns the other tokens.
  ///
  /// A token also counts as one of the others if `settleOne` returns false.
  ///
  /// - Parameter heldAfter: the time since boot after which leases must end. Without it, a lease
  ///   that has ended counts until another receiver gets the message.
  private func settle(
    _ tokens: [LeaseToken], heldAfter: Int64 = -1, _ db: Database,
    _ settleOne: (ConsumerRecord, Leased) throws -> Bool
  ) throws -> [LeaseToken] {
    let select = try EngineStatement(
      db,
      """
      SELECT lease, attempt_count, ordering_key, failures, held_until FROM delivery
      WHERE consumer_id = ? AND timetoken = ? AND lease IS NOT NULL
        AND (? < 0 OR (held_boot, held_until) > (?, ?))
      """)
    var consumers: [Int64: ConsumerRecord] = [:]
    return try tokens.filter { token in
      let leased = try select.first(
        token.consumerID, token.timetoken.rawValue, heldAfter, bootNumber, heldAfter
      ) { row -> Leased? in
        guard token.opens(row.bytes(at: 0)) else { return nil }
        return Leased(
          token: token, attemptCount: Int(row.number(at: 1)),
          orderingKey: row.text(at: 2), failures: row.text(at: 3),
          heldUntil: row.optionalNumber(at: 4))
      }
      guard case let leased?? = leased else { return true }
      let found = try consumers[token.consumerID] ?? ConsumerRecord.find(token.consumerID, db)
      guard let consumer = found else { return true }
      consumers[token.consumerID] = consumer
      return try !settleOne(consumer, leased)
    }
  }
}

/// The deliveries of one consumer that a transaction acknowledges.
///
/// They and the messages that no other consumer needs are removed together.
struct Acknowledgement {
  private let consumer: ConsumerRecord
  private var timetokens: Set<Int64> = []
  private var orderingKeys: [String] = []

  init(_ consumer: ConsumerRecord) {
    self.consumer = consumer
  }

  /// - Returns: false if the delivery was already added.
  mutating func add(_ timetoken: Timetoken, orderingKey: String?) -> Bool {
    guard timetokens.insert(timetoken.rawValue).inserted else { return false }
    if let orderingKey { orderingKeys.append(orderingKey) }
    return true
  }

  func finish(_ db: Database) throws {
    let deliveries = DeliveryTable(consumerID: consumer.id, db: db)
    let list = TimetokenList(timetokens)
    try deliveries.delete(list)
    for key in orderingKeys { try deliveries.unblock(key) }
    if consumer.keepsAcknowledged { return }
    var removal = MessageRemoval(db, channelID: consumer.channelID)
    if consumer.isAlone {
      try removal.remove(list)
    } else {
      for timetoken in timetokens {
        try removal.removeUnlessNeeded(Timetoken(unchecked: timetoken))
      }
    }
    try removal.finish()
  }
}

/// Any number of timetokens as one parameter: `timetoken IN (SELECT value FROM json_each(?))`.
struct TimetokenList {
  let json: String

  init(_ timetokens: some Collection<Int64>) {
    json = "[\(timetokens.map(String.init).joined(separator: ","))]"
  }
}
