internal import GRDB

/// The rows of `delivery` of one consumer: messages that it has received or passed and not settled.
struct DeliveryTable {
  let consumerID: Int64
  let db: Database

  /// Whether another message with the same key is leased, or an earlier one must come first.
  ///
  /// A message that is delayed, by its publisher or by a release, holds back no other.
  func mustWait(_ timetoken: Timetoken, for key: String) throws -> Bool {
    try db.number(
      """
      SELECT 1 FROM delivery
      WHERE consumer_id = ?1 AND ordering_key = ?2 AND timetoken <> ?3
        AND ((lease IS NOT NULL AND held_until IS NOT NULL)
          OR (held_until IS NULL AND due IS NULL AND timetoken < ?3))
      LIMIT 1
      """, consumerID, key, timetoken.rawValue) != nil
  }

  /// Adds a message that a receive passes.
  ///
  /// - Parameters:
  ///   - secret: that of its lease; nil if it is not delivered now.
  ///   - due: when it becomes ready, if it is delayed.
  ///   - isBlocked: whether it waits for its ordering key.
  func insert(
    _ message: NewMessage, secret: [UInt8]? = nil, due: Int64? = nil, isBlocked: Bool = false,
    _ clock: ReceptionClock
  ) throws {
    let isLeased = secret != nil
    try db.run(
      """
      INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, lease,
        held_boot, held_until, due, is_blocked)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, consumerID, message.timetoken.rawValue, message.priority.rawValue, message.orderingKey,
      isLeased ? 1 : 0, secret, isLeased ? clock.bootNumber : nil,
      isLeased ? clock.leaseEnd : nil, due, isBlocked ? 1 : 0)
  }

  func lease(
    _ timetoken: Timetoken, attempt: Int, secret: [UInt8], _ clock: ReceptionClock,
    failures: String?
  ) throws {
    try db.run(
      """
      UPDATE delivery SET attempt_count = ?, lease = ?, held_boot = ?, held_until = ?, failures = ?
      WHERE consumer_id = ? AND timetoken = ?
      """, attempt, secret, clock.bootNumber, clock.leaseEnd, failures, consumerID,
      timetoken.rawValue)
  }

  func block(_ timetoken: Timetoken) throws {
    try db.run(
      "UPDATE delivery SET is_blocked = 1 WHERE consumer_id = ? AND timetoken = ?", consumerID,
      timetoken.rawValue)
  }

  /// Unblocks the first message that waits for a key, after another with that key was settled or
  /// released; taking it checks again whether it must wait.
  func unblock(_ key: String?) throws {
    guard let key else { return }
    try db.run(
      """
      UPDATE delivery SET is_blocked = 0 WHERE consumer_id = ?1 AND timetoken = (
        SELECT min(timetoken) FROM delivery
        WHERE consumer_id = ?1 AND ordering_key = ?2 AND is_blocked = 1)
      """, consumerID, key)
  }

  /// Deletes a delivery, and unblocks the next message with its key.
  ///
  /// - Returns: its number of attempts and its failures; nil if there was none.
  @discardableResult
  func delete(_ timetoken: Timetoken) throws -> (attemptCount: Int, failures: String?)? {
    let delete = try db.cachedStatement(
      sql: """
        DELETE FROM delivery WHERE consumer_id = ? AND timetoken = ?
        RETURNING attempt_count, failures, ordering_key
        """)
    guard let row = try Row.fetchOne(delete, arguments: [consumerID, timetoken.rawValue]) else {
      return nil
    }
    try unblock(row[2])
    return (row[0], row[1])
  }

  /// Deletes deliveries; messages that wait for their keys still wait.
  func delete(_ timetokens: TimetokenList) throws {
    try db.run(
      """
      DELETE FROM delivery
      WHERE consumer_id = ? AND timetoken IN (SELECT value FROM json_each(?))
      """, consumerID, timetokens.json)
  }

  /// Takes a message from the consumer, in any state.
  func forget(_ timetoken: Timetoken) throws {
    try delete(timetoken)
    try db.run(
      "DELETE FROM dead_letter WHERE consumer_id = ? AND timetoken = ?", consumerID,
      timetoken.rawValue)
  }

  /// Makes a dead letter of a delivery.
  func moveToDeadLetters(_ timetoken: Timetoken, reason: String, at time: Int64) throws {
    guard let (attemptCount, failures) = try delete(timetoken) else { return }
    let failure = DeliveryFailure(attempt: attemptCount, ticks: time, reason: reason)
    try db.run(
      "INSERT INTO dead_letter VALUES (?, ?, ?, ?, ?, ?)", consumerID, timetoken.rawValue,
      attemptCount, reason, time, failure.appended(to: failures))
  }
}
