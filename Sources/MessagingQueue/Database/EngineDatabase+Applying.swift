internal import FileLayer
package import GRDB

/// What the nodes of a replicated home do with the records of their log.
///
/// Each of these functions depends on nothing but the rows, its arguments and the time of ``at(_:)``. Leases are no
/// rows there: the owner has them in memory. So a row of `delivery` is a message that a position has passed and that
/// its consumer is not done with.
extension EngineDatabase {
  /// Stores the messages of a commit, whose times are absolute.
  ///
  /// - Returns: their places, those of the first messages for repetitions.
  package func apply(_ messages: [Message], in db: Database) throws -> [Timetoken] {
    var publication: Publication?
    let timetokens = try publish(messages, in: &publication, db)
    try publication?.finish()
    return timetokens
  }

  /// What a consumer has of a message.
  package struct ConsumerDelivery {
    package let timetoken: Timetoken
    /// Deliveries that ended without an acknowledgement.
    package let attemptCount: Int
    package let end: End?
    package var maximumAttempts: Int? { consumer.maximumAttempts }
    fileprivate let consumer: ConsumerRecord
    fileprivate let priority: Int64
    fileprivate let orderingKey: String?

    package enum End: Sendable { case acknowledged, dead }
  }

  /// - Returns: nil if the log has no such message, or its channel no such consumer.
  package func delivery(
    of timetoken: Timetoken, for consumer: String, in db: Database
  ) throws -> ConsumerDelivery? {
    let message = try EngineStatement(
      db,
      """
      SELECT message.priority, message.ordering_key, consumer.id,
        ifnull((SELECT timetoken FROM position
          WHERE consumer_id = consumer.id AND priority = message.priority), 0),
        (SELECT attempt_count FROM delivery
          WHERE consumer_id = consumer.id AND timetoken = message.timetoken),
        EXISTS (SELECT 1 FROM dead_letter
          WHERE consumer_id = consumer.id AND timetoken = message.timetoken)
      FROM message JOIN consumer USING (channel_id)
      WHERE message.timetoken = ? AND consumer.name = ?
      """)
    let found = try message.first(timetoken.rawValue, consumer) { row in
      (
        priority: row.number(at: 0), orderingKey: row.text(at: 1), consumerID: row.number(at: 2),
        position: row.number(at: 3), attemptCount: row.optionalNumber(at: 4),
        isDead: row.number(at: 5) == 1
      )
    }
    guard let found, let record = try ConsumerRecord.find(found.consumerID, db) else { return nil }
    var end: ConsumerDelivery.End?
    if found.isDead {
      end = .dead
    } else if found.attemptCount == nil, found.position >= timetoken.rawValue {
      end = .acknowledged
    }
    return ConsumerDelivery(
      timetoken: timetoken, attemptCount: Int(found.attemptCount ?? 0), end: end, consumer: record,
      priority: found.priority, orderingKey: found.orderingKey)
  }

  /// What a settlement changes.
  package enum AppliedSettlement: Sendable {
    case acknowledgement
    /// The message goes back, or becomes a dead letter; nil for a reason that none is given for.
    ///
    /// No one gets it before `due`, a time of the wall clock in units of 100 ns since 1970.
    case release(reason: String?, countsAttempt: Bool, isDead: Bool, due: Int64?)
    case rejection(reason: String)
    case leaseEnd(isDead: Bool)
  }

  /// Settles a delivery that has not ended.
  package func settle(
    _ delivery: ConsumerDelivery, _ settlement: AppliedSettlement, in db: Database
  ) throws {
    let table = DeliveryTable(consumerID: delivery.consumer.id, db: db)
    let now = WallTime.ticks(of: time.now)
    // Retention looks no further than the position of normal priority.
    try table.pass(delivery.timetoken, Int64(Priority.normal.rawValue), delivery.consumer.channelID)
    try table.pass(delivery.timetoken, delivery.priority, delivery.consumer.channelID)
    notifier.announceReturn(to: delivery.consumer.channel)
    switch settlement {
    case .acknowledgement:
      var acknowledgement = Acknowledgement(delivery.consumer)
      _ = acknowledgement.add(delivery.timetoken, orderingKey: delivery.orderingKey)
      try acknowledgement.finish(db)
    case .release(let reason, let countsAttempt, let isDead, let due):
      try db.run(
        "UPDATE delivery SET due = ? WHERE consumer_id = ? AND timetoken = ?", due,
        delivery.consumer.id, delivery.timetoken.rawValue)
      guard countsAttempt else { break }
      try table.countAttempt(
        delivery.timetoken, reason ?? DeliveryFailure.released, at: now, isDead: isDead)
    case .rejection(let reason):
      try table.countAttempt(delivery.timetoken, reason, at: now, isDead: true)
    case .leaseEnd(let isDead):
      try table.countAttempt(
        delivery.timetoken, DeliveryFailure.leaseEnded, at: now, isDead: isDead)
    }
  }

  /// A message that a consumer is not done with.
  package struct Candidate {
    package let timetoken: Timetoken
    package let orderingKey: String?
    package let expires: Int64?
    package let attemptCount: Int
    package let payloadByteCount: Int64
  }

  /// Calls `body` with what a consumer is not done with and that is due: the highest priority first, the oldest first
  /// within one.
  ///
  /// - Parameter body: returns false to end it.
  package func candidates(
    of channel: Channel, for consumer: Consumer, in db: Database,
    _ body: (Candidate) throws -> Bool
  ) throws {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return }
    let ready = try db.cachedStatement(
      sql: """
        SELECT timetoken, delivery.ordering_key, expires, attempt_count, length(payload)
        FROM delivery JOIN message USING (timetoken)
        WHERE consumer_id = ? AND delivery.priority = ?
          AND (delivery.due IS NULL OR delivery.due <= ?) ORDER BY timetoken
        """)
    let now = WallTime.ticks(of: time.now)
    let positions = try Self.positions(of: record.id, db)
    for priority in try Self.priorities(of: record.channelID, db) {
      let rows = try Row.fetchCursor(ready, arguments: [record.id, priority.rawValue, now])
      while let row = try rows.next() {
        let candidate = Candidate(
          timetoken: Timetoken(unchecked: row[0]), orderingKey: row[1], expires: row[2],
          attemptCount: row[3], payloadByteCount: row[4])
        guard try body(candidate) else { return }
      }
      let news = try Row.fetchCursor(
        db.cachedStatement(sql: Self.selectSizes(priority)),
        arguments: [record.channelID, positions[priority.rawValue] ?? 0, priority.rawValue, now])
      while let row = try news.next() {
        let candidate = Candidate(
          timetoken: Timetoken(unchecked: row[0]), orderingKey: row[1], expires: row[2],
          attemptCount: 0, payloadByteCount: row[3])
        guard try body(candidate) else { return }
      }
    }
  }

  /// As ``selectNew(_:)``, of what is due, with the sizes of payloads in their place.
  private static func selectSizes(_ priority: Priority) -> String {
    """
    SELECT timetoken, ordering_key, expires, length(payload) FROM message
    WHERE channel_id = ? AND timetoken > ? AND priority = ?
      \(priority == .normal ? "" : "AND priority <> 4")
      AND (due IS NULL OR due <= ?)
    ORDER BY timetoken
    """
  }

  /// What a receiver gets of a message that was leased to it; nil if the log does not have it any more.
  package func delivery(
    of timetoken: Timetoken, from channel: Channel, for consumer: Consumer, attempt: Int,
    secret: [UInt8], in db: Database
  ) throws -> Delivery? {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db),
      let message = try Self.message(timetoken, of: channel, db)
    else { return nil }
    return Delivery(
      token: LeaseToken(consumerID: record.id, timetoken: timetoken, secret: secret),
      channel: channel, payload: message.payload, headers: message.headers,
      priority: message.priority, orderingKey: message.orderingKey,
      expirationTicks: message.expirationTicks, attempt: attempt,
      maximumAttempts: record.maximumAttempts)
  }
}

extension DeliveryTable {
  /// Moves the consumer's position up to a message; those that it passes wait to be settled.
  fileprivate func pass(_ timetoken: Timetoken, _ priority: Int64, _ channelID: Int64) throws {
    let position =
      try db.number(
        "SELECT timetoken FROM position WHERE consumer_id = ? AND priority = ?", consumerID,
        priority) ?? 0
    if position >= timetoken.rawValue { return }
    try db.run(
      """
      INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, due,
        is_blocked)
      SELECT ?, timetoken, priority, ordering_key, 0, due, 0 FROM message
      WHERE channel_id = ? AND timetoken > ? AND timetoken <= ? AND priority = ?
      """, consumerID, channelID, position, timetoken.rawValue, priority)
    try db.run(
      "INSERT OR REPLACE INTO position VALUES (?, ?, ?)", consumerID, priority, timetoken.rawValue)
  }

  /// Counts an attempt that failed.
  fileprivate func countAttempt(
    _ timetoken: Timetoken, _ reason: String, at now: Int64, isDead: Bool
  ) throws {
    let row = try EngineStatement(
      db,
      """
      UPDATE delivery SET attempt_count = attempt_count + 1
      WHERE consumer_id = ? AND timetoken = ? RETURNING attempt_count, failures
      """)
    let found = try row.first(consumerID, timetoken.rawValue) { row in
      (attempt: Int(row.number(at: 0)), failures: row.text(at: 1))
    }
    guard let found else { return }
    if isDead { return try moveToDeadLetters(timetoken, reason: reason, at: now) }
    let failure = DeliveryFailure(attempt: found.attempt, ticks: now, reason: reason)
    try db.run(
      "UPDATE delivery SET failures = ? WHERE consumer_id = ? AND timetoken = ?",
      failure.appended(to: found.failures), consumerID, timetoken.rawValue)
  }
}
