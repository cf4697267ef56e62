internal import FileLayer
internal import Foundation
package import GRDB

extension EngineDatabase {
  /// Ends deliveries for good: a consumer never gets the message again.
  ///
  /// The message leaves the log when no other consumer needs it, unless its channel keeps it.
  ///
  /// - Returns: The tokens that settle nothing; the others are settled all the same.
  package func acknowledge(_ tokens: [LeaseToken], in db: Database) throws -> [LeaseToken] {
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

  /// Gives delivered messages back: at once, or when `delay` is over or the machine restarts.
  ///
  /// One that was delivered as often as its consumer allows becomes a dead letter.
  ///
  /// - Returns: The tokens that settle nothing; the others are settled all the same.
  package func release(
    _ tokens: [LeaseToken], after delay: Duration = .zero, reason: String? = nil, in db: Database
  ) throws -> [LeaseToken] {
    let reason = reason ?? DeliveryFailure.released
    let update = try db.cachedStatement(
      sql: """
        UPDATE delivery
        SET lease = NULL, held_boot = ?, held_until = ?, is_blocked = 0, failures = ?
        WHERE consumer_id = ? AND timetoken = ?
        """)
    let boot = delay == .zero ? nil : bootNumber
    let until = delay == .zero ? nil : nanosecondsSinceBoot + delay.wholeNanoseconds
    let now = WallTime.ticks(of: time.now)
    var deadCount = 0
    let unknown = try settle(tokens, db) { consumer, leased in
      let deliveries = DeliveryTable(consumer, db)
      // Also with a delay: who waits for the end of the lease learns of a sooner one.
      notifier.announceReturn(to: consumer.channel)
      if let mostAttempts = consumer.mostAttempts, leased.attemptCount >= mostAttempts {
        deadCount += 1
        try deliveries.moveToDeadLetters(leased.timetoken, reason: reason, at: now)
        return true
      }
      let failure = DeliveryFailure(attempt: leased.attemptCount, time: now, reason: reason)
      try update.execute(arguments: [
        boot, until, failure.appended(to: leased.failures), consumer.id, leased.timetoken.rawValue,
      ])
      try deliveries.unblock(leased.orderingKey)
      return true
    }
    commitCounter?.note {
      $0.released += tokens.count - unknown.count
      $0.deadLettered += deadCount
    }
    return unknown
  }

  /// Gives up on delivered messages: they become dead letters of their consumer, with this reason.
  ///
  /// - Returns: The tokens that settle nothing; the others are settled all the same.
  package func reject(
    _ tokens: [LeaseToken], reason: String, in db: Database
  ) throws -> [LeaseToken] {
    let now = WallTime.ticks(of: time.now)
    let unknown = try settle(tokens, db) { consumer, leased in
      try DeliveryTable(consumer, db).moveToDeadLetters(leased.timetoken, reason: reason, at: now)
      if leased.orderingKey != nil { notifier.announceReturn(to: consumer.channel) }
      return true
    }
    commitCounter?.note { $0.deadLettered += tokens.count - unknown.count }
    return unknown
  }

  /// Lets leases that have not ended end at `lease` from now, sooner or later than they did.
  ///
  /// - Returns: The tokens whose leases have ended; the others are extended all the same.
  package func extend(
    _ tokens: [LeaseToken], by lease: Duration, in db: Database
  ) throws -> [LeaseToken] {
    let update = try db.cachedStatement(
      sql: """
        UPDATE delivery SET held_until = ? WHERE consumer_id = ? AND timetoken = ?
        """)
    let now = nanosecondsSinceBoot
    let until = now + lease.wholeNanoseconds
    return try settle(tokens, heldAfter: now, db) { consumer, leased in
      if let end = leased.heldUntil, until < end { notifier.announceReturn(to: consumer.channel) }
      try update.execute(arguments: [until, consumer.id, leased.timetoken.rawValue])
      return true
    }
  }

  /// The most bytes that the reason of a failure may have.
  package static let maximumReasonByteCount = 1024

  static func check(reason: String) throws(EngineError) {
    guard !reason.isEmpty, reason.utf8.count <= maximumReasonByteCount else {
      throw EngineError(
        .invalidArgument, "a reason of \(reason.utf8.count) bytes",
        hint: "use 1 to \(maximumReasonByteCount) bytes")
    }
  }

  static func check(delay: Duration) throws(EngineError) {
    guard delay >= .zero, delay <= EngineConfiguration.maximumLeaseDuration else {
      throw EngineError(
        .invalidArgument, "a delay of \(delay)", hint: "nothing, or at most 366 days")
    }
  }

  /// - Throws: `unknownLease` unless every token has settled something.
  static func require(
    _ unknown: [LeaseToken], of tokens: [LeaseToken], during operation: String
  ) throws(EngineError) {
    if unknown.isEmpty { return }
    throw EngineError(
      .unknownLease,
      "\(operation): \(unknown.count) of \(tokens.count) deliveries were no longer leased to you",
      hint: "take a longer lease, or settle sooner", unknownLeases: unknown)
  }

  /// A delivery that a token opens.
  private struct Leased {
    let timetoken: Timetoken
    let attemptCount: Int
    let orderingKey: String?
    let failures: String?
    /// When its lease ends, on the boot clock; nil once it is known to have ended.
    let heldUntil: Int64?
  }

  /// Does `settleOne` to each delivery that its token still opens, and returns the other tokens.
  ///
  /// A token also counts among the others when `settleOne` returns false.
  ///
  /// - Parameter heldAfter: the time since boot that leases must outlast; without it one that has ended
  ///   counts as long as nobody else has received the message.
  private func settle(
    _ tokens: [LeaseToken], heldAfter: Int64 = -1, _ db: Database,
    _ settleOne: (ConsumerRecord, Leased) throws -> Bool
  ) throws -> [LeaseToken] {
    let select = try db.cachedStatement(
      sql: """
        SELECT lease, attempt_count, ordering_key, failures, held_until FROM delivery
        WHERE consumer_id = ? AND timetoken = ? AND lease IS NOT NULL
          AND (? < 0 OR (held_boot, held_until) > (?, ?))
        """)
    var consumers: [Int64: ConsumerRecord] = [:]
    return try tokens.filter { token in
      let row = try Row.fetchOne(
        select,
        arguments: [
          token.consumerID, token.timetoken.rawValue, heldAfter, bootNumber, heldAfter,
        ])
      guard let row, token.opens(try row.bytes(at: 0)) else { return true }
      let found = try consumers[token.consumerID] ?? ConsumerRecord.find(token.consumerID, db)
      guard let consumer = found else { return true }
      consumers[token.consumerID] = consumer
      return try !settleOne(
        consumer,
        Leased(
          timetoken: token.timetoken, attemptCount: row[1], orderingKey: row[2], failures: row[3],
          heldUntil: row[4]))
    }
  }
}

/// The deliveries of one consumer that a transaction ends for good: they, and the messages that nobody
/// else needs, go together.
struct Acknowledgement {
  private let consumer: ConsumerRecord
  private var timetokens: Set<Int64> = []
  private var orderingKeys: [String] = []

  init(_ consumer: ConsumerRecord) {
    self.consumer = consumer
  }

  /// - Returns: false if it was added before.
  mutating func add(_ timetoken: Timetoken, orderingKey: String?) -> Bool {
    guard timetokens.insert(timetoken.rawValue).inserted else { return false }
    if let orderingKey { orderingKeys.append(orderingKey) }
    return true
  }

  func finish(_ db: Database) throws {
    let deliveries = DeliveryTable(consumer, db)
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
