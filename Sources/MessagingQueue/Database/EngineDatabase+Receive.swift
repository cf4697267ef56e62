internal import FileLayer
internal import GRDB

extension EngineDatabase {
  /// The result of one transaction of a receive.
  struct Reception: Sendable {
    var deliveries: [Delivery] = []
    /// Whether the transaction reached its limit of passed messages without a delivery.
    ///
    /// Another transaction can then find more.
    var stoppedEarly = false
  }

  /// Leases up to `maximumCount` messages of a channel to the caller: the highest priority first,
  /// the oldest first within one.
  ///
  /// It returns fewer if there are no more, or if the sum of payloads would exceed
  /// ``EngineConfiguration/maximumReceiveByteCount``. A transaction passes a limited number of
  /// messages that it cannot deliver. The caller has checked the arguments.
  func receive(
    from channel: Channel, for consumer: Consumer, maximumCount: Int, lease: Duration,
    in db: Database
  ) throws -> Reception {
    guard let record = try Self.receivingConsumer(consumer, of: channel, db) else {
      return Reception()
    }
    var receiver = Receiver(self, db, record, maximumCount: maximumCount, lease: lease)
    let reception = try receiver.receive()
    commitCounter?.note { counts in
      receiver.add(to: &counts)
      counts.countReceived(reception.deliveries)
    }
    return reception
  }

  /// How long until the next lease or delay of a consumer ends; nil if there is none.
  ///
  /// It counts only messages that this consumer's receives have passed. Call it after a receive that
  /// found nothing: it has passed all messages.
  func timeUntilNextReturn(
    of channel: Channel, for consumer: Consumer, _ db: Database
  ) throws -> Duration? {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return nil }
    let held = try db.number(
      """
      SELECT held_until FROM delivery WHERE consumer_id = ? AND held_until IS NOT NULL
        AND held_boot = ? ORDER BY held_until LIMIT 1
      """, record.id, bootNumber)
    let due = try db.number(
      "SELECT due FROM delivery WHERE consumer_id = ? AND due IS NOT NULL ORDER BY due LIMIT 1",
      record.id)
    let times = [
      held.map { Duration.nanoseconds($0 - nanosecondsSinceBoot) },
      due.map { Duration.nanoseconds(100) * ($0 - WallTime.ticks(of: time.now)) },
    ]
    return times.compactMap { $0 }.min().map { max($0, .milliseconds(1)) }
  }
}

extension EngineDatabase {
  /// `IS NOT NULL` fails here: SQLite 3.40 takes it as true for every column in a RETURNING clause.
  package static let endHolds = """
    UPDATE delivery SET held_boot = NULL, held_until = NULL
    WHERE consumer_id = ? AND held_until IS NOT NULL AND (held_boot, held_until) <= (?, ?)
    RETURNING ordering_key, typeof(lease) <> 'null'
    """

  package static let selectReady = """
    SELECT timetoken, attempt_count, lease IS NOT NULL, delivery.ordering_key, failures, expires,
      headers, payload
    FROM delivery INDEXED BY delivery_ready JOIN message USING (timetoken)
    WHERE consumer_id = ? AND delivery.priority = ? AND held_until IS NULL AND delivery.due IS NULL
      AND is_blocked = 0 AND timetoken > ?
    ORDER BY timetoken LIMIT ?
    """

  /// Uses the index of the channel, or the index of the other priorities.
  package static func selectNew(_ priority: Priority) -> String {
    """
    SELECT timetoken, priority, due, expires, ordering_key, headers, payload FROM message
    WHERE channel_id = ? AND timetoken > ?
      \(priority == .normal ? "" : "AND priority = \(priority.rawValue) AND priority <> 4")
    ORDER BY timetoken
    """
  }
}

/// The clock values that one receive uses.
struct ReceptionClock {
  let bootNumber: Int64
  /// Nanoseconds of the boot clock.
  let now: Int64
  let leaseEnd: Int64
  let wallNow: Int64

  init(_ database: EngineDatabase, lease: Duration) {
    bootNumber = database.bootNumber
    now = database.nanosecondsSinceBoot
    leaseEnd = now + lease.wholeNanoseconds
    wallNow = WallTime.ticks(of: database.time.now)
  }
}
