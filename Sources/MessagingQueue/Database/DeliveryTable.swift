internal import GRDB

/// The rows of `delivery` of one consumer: messages that it has received or passed and not settled.
struct DeliveryTable {
  private let consumer: ConsumerRecord
  private let db: Database

  init(_ consumer: ConsumerRecord, _ db: Database) {
    self.consumer = consumer
    self.db = db
  }

  /// Whether another message with the same key is leased, or an earlier one must come first.
  ///
  /// A message that is delayed, by its publisher or by a release, holds back no other.
  func mustWait(_ timetoken: Timetoken, for key: String) throws -> Bool {
    let select = try db.cachedStatement(
      sql: """
        SELECT EXISTS (SELECT 1 FROM delivery
          WHERE consumer_id = ? AND ordering_key = ? AND timetoken <> ?
            AND ((lease IS NOT NULL AND held_until IS NOT NULL)
              OR (held_until IS NULL AND due IS NULL AND timetoken < ?)))
        """)
    let arguments: StatementArguments = [
      consumer.id, key, timetoken.rawValue, timetoken.rawValue,
    ]
    return try Bool.fetchOne(select, arguments: arguments) ?? false
  }

  func insertLeased(_ message: NewMessage, secret: [UInt8], _ clock: ReceptionClock) throws {
    try insert(
      message, attemptCount: 1, secret: secret, heldBoot: clock.bootNumber,
      heldUntil: clock.leaseEnd)
  }

  func insertDelayed(_ message: NewMessage, until due: Int64) throws {
    try insert(message, due: due)
  }

  func insertBlocked(_ message: NewMessage) throws {
    try insert(message, isBlocked: true)
  }

  private func insert(
    _ message: NewMessage, attemptCount: Int = 0, secret: [UInt8]? = nil, heldBoot: Int64? = nil,
    heldUntil: Int64? = nil, due: Int64? = nil, isBlocked: Bool = false
  ) throws {
    try EngineStatement(
      db,
      """
      INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, lease,
        held_boot, held_until, due, is_blocked)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """
    ).execute(
      consumer.id, message.timetoken.rawValue, message.priority.rawValue, message.orderingKey,
      attemptCount, secret, heldBoot, heldUntil, due, isBlocked ? 1 : 0)
  }

  func lease(
    _ timetoken: Timetoken, attempt: Int, secret: [UInt8], _ clock: ReceptionClock,
    failures: String?
  ) throws {
    try EngineStatement(
      db,
      """
      UPDATE delivery SET attempt_count = ?, lease = ?, held_boot = ?, held_until = ?, failures = ?
      WHERE consumer_id = ? AND timetoken = ?
      """
    ).execute(
      attempt, secret, clock.bootNumber, clock.leaseEnd, failures, consumer.id, timetoken.rawValue)
  }

  func block(_ timetoken: Timetoken) throws {
    try db.cachedStatement(
      sql:
        "UPDATE delivery SET is_blocked = 1 WHERE consumer_id = ? AND timetoken = ?"
    ).execute(arguments: [consumer.id, timetoken.rawValue])
  }

  /// Unblocks the first message that waits for a key, after another with that key was settled or
  /// released; taking it checks again whether it must wait.
  func unblock(_ key: String?) throws {
    guard let key else { return }
    try db.cachedStatement(
      sql: """
        UPDATE delivery SET is_blocked = 0 WHERE consumer_id = ?1 AND timetoken = (
          SELECT min(timetoken) FROM delivery
          WHERE consumer_id = ?1 AND ordering_key = ?2 AND is_blocked = 1)
        """
    ).execute(arguments: [consumer.id, key])
  }

  func delete(_ timetoken: Timetoken, orderingKey: String?) throws {
    try EngineStatement(db, "DELETE FROM delivery WHERE consumer_id = ? AND timetoken = ?")
      .execute(consumer.id, timetoken.rawValue)
    try unblock(orderingKey)
  }

  /// Deletes deliveries; messages that wait for their keys still wait.
  func delete(_ timetokens: TimetokenList) throws {
    try EngineStatement(
      db,
      """
      DELETE FROM delivery
      WHERE consumer_id = ? AND timetoken IN (SELECT value FROM json_each(?))
      """
    ).execute(consumer.id, timetokens.json)
  }

  /// Takes a message from the consumer, in any state.
  func forget(_ timetoken: Timetoken) throws {
    let select = try db.cachedStatement(
      sql: "SELECT ordering_key FROM delivery WHERE consumer_id = ? AND timetoken = ?")
    if let row = try Row.fetchOne(select, arguments: [consumer.id, timetoken.rawValue]) {
      try delete(timetoken, orderingKey: row[0])
    }
    try db.cachedStatement(sql: "DELETE FROM dead_letter WHERE consumer_id = ? AND timetoken = ?")
      .execute(arguments: [consumer.id, timetoken.rawValue])
  }

  /// Makes a dead letter of a delivery.
  func moveToDeadLetters(_ timetoken: Timetoken, reason: String, at time: Int64) throws {
    let delete = try db.cachedStatement(
      sql: """
        DELETE FROM delivery WHERE consumer_id = ? AND timetoken = ?
        RETURNING attempt_count, ordering_key, failures
        """)
    guard let row = try Row.fetchOne(delete, arguments: [consumer.id, timetoken.rawValue]) else {
      return
    }
    let attemptCount: Int = row[0]
    let failure = DeliveryFailure(attempt: attemptCount, ticks: time, reason: reason)
    try db.cachedStatement(sql: "INSERT INTO dead_letter VALUES (?, ?, ?, ?, ?, ?)")
      .execute(arguments: [
        consumer.id, timetoken.rawValue, attemptCount, reason, time, failure.appended(to: row[2]),
      ])
    try unblock(row[1])
  }
}
