internal import FileLayer
internal import GRDB
internal import VaultCrypto

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
    var receiver = try Receiver(
      record, db, clock: ReceptionClock(self, lease: lease), random: random,
      maximumCount: maximumCount, maximumByteCount: configuration.maximumReceiveByteCount)
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
    guard let channelID = try Self.channelID(channel, db),
      let record = try ConsumerRecord.find(consumer, channelID: channelID, db)
    else { return nil }
    let held = try Int64.fetchOne(
      db.cachedStatement(
        sql: """
          SELECT held_until FROM delivery WHERE consumer_id = ? AND held_until IS NOT NULL
            AND held_boot = ? ORDER BY held_until LIMIT 1
          """), arguments: [record.id, bootNumber])
    let due = try Int64.fetchOne(
      db.cachedStatement(
        sql:
          "SELECT due FROM delivery WHERE consumer_id = ? AND due IS NOT NULL ORDER BY due LIMIT 1"
      ), arguments: [record.id])
    let times = [
      held.map { Duration.nanoseconds($0 - nanosecondsSinceBoot) },
      due.map { Duration.nanoseconds(100) * ($0 - WallTime.ticks(of: time.now)) },
    ]
    return times.compactMap { $0 }.min().map { max($0, .milliseconds(1)) }
  }

  // For tests of SQLite's query plans.
  package static var endHolds: String { Receiver.endHolds }
  package static var selectReady: String { Receiver.selectReady }
  package static var selectNew: String { Receiver.selectNew(.normal) }
  package static var selectNewOfHighestPriority: String {
    Receiver.selectNew(Priority(stored: 9))
  }

  static func check(maximumCount: Int) throws(EngineError) {
    guard maximumCount > 0 else {
      throw EngineError(
        .invalidArgument, "the maximum count of a receive is \(maximumCount)",
        hint: "use at least 1")
    }
  }

  static func check(lease: Duration) throws(EngineError) {
    guard lease > .zero, lease <= EngineConfiguration.maximumLeaseDuration else {
      throw EngineError(
        .invalidArgument, "the lease is \(lease)", hint: "use a lease above 0 and at most 366 days")
    }
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
