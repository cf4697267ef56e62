internal import GRDB
internal import VaultCrypto

/// One transaction of a receive.
///
/// First, leases and delays that have ended make their messages ready. Then the receiver takes, for
/// each priority from the highest down, the ready messages and then the new ones after the
/// consumer's position in the log. The position passes every message once: a message that cannot be
/// delivered yet gets a row that says why.
struct Receiver {
  /// How many messages of the log, or rows that wait for their key, one transaction passes.
  static let passedAtOnce = 10_000

  private let tables: EngineDatabase
  private let db: Database
  private let consumer: ConsumerRecord
  private let deliveries: DeliveryTable
  private let clock: ReceptionClock
  private let maximumCount: Int
  private var byteCount = 0
  private var passedCount = 0
  private var isFull = false
  private var reception = EngineDatabase.Reception()
  private var removal: MessageRemoval
  private var counts = OperationCounts()

  init(
    _ tables: EngineDatabase, _ db: Database, _ consumer: ConsumerRecord, maximumCount: Int,
    lease: Duration
  ) {
    self.tables = tables
    self.db = db
    self.consumer = consumer
    self.maximumCount = maximumCount
    deliveries = DeliveryTable(consumerID: consumer.id, db: db)
    clock = ReceptionClock(tables, lease: lease)
    removal = MessageRemoval(db, channelID: consumer.channelID)
  }

  mutating func receive() throws -> EngineDatabase.Reception {
    try endHoldsAndDelays()
    for priority in try EngineDatabase.priorities(of: consumer.channelID, db) where !isFull {
      try takeReady(priority)
      try takeNew(priority)
    }
    try removal.finish()
    reception.stoppedEarly = reception.deliveries.isEmpty && passedCount >= Self.passedAtOnce
    return reception
  }

  /// Adds what ended in this transaction to `counts`.
  func add(to counts: inout OperationCounts) {
    counts.leasesExpired += self.counts.leasesExpired
    counts.deadLettered += self.counts.deadLettered
    counts.expired += self.counts.expired
  }

  private mutating func endHoldsAndDelays() throws {
    try moveExhaustedToDeadLetters()
    let ended = try Row.fetchAll(
      db.cachedStatement(sql: EngineDatabase.endHolds),
      arguments: [consumer.id, clock.bootNumber, clock.now])
    for row in ended {
      if row[1] { counts.leasesExpired += 1 }
      try deliveries.unblock(row[0])
    }
    try db.run(
      "UPDATE delivery SET due = NULL WHERE consumer_id = ? AND due <= ?", consumer.id,
      clock.wallNow)
  }

  /// Makes dead letters of deliveries whose last allowed lease ended without an answer.
  private mutating func moveExhaustedToDeadLetters() throws {
    guard let maximumAttempts = consumer.maximumAttempts else { return }
    let select = try db.cachedStatement(
      sql: """
        SELECT timetoken FROM delivery
        WHERE consumer_id = ? AND held_until IS NOT NULL AND (held_boot, held_until) <= (?, ?)
          AND lease IS NOT NULL AND attempt_count >= ?
        """)
    let timetokens = try Int64.fetchAll(
      select, arguments: [consumer.id, clock.bootNumber, clock.now, maximumAttempts])
    for timetoken in timetokens {
      try deliveries.moveToDeadLetters(
        Timetoken(unchecked: timetoken), reason: DeliveryFailure.leaseEnded, at: clock.wallNow)
    }
    counts.leasesExpired += timetokens.count
    counts.deadLettered += timetokens.count
  }

  private mutating func takeReady(_ priority: Priority) throws {
    let select = try db.cachedStatement(sql: EngineDatabase.selectReady)
    var last: Int64 = 0
    while !isFull {
      let rows = try Row.fetchAll(
        select, arguments: [consumer.id, priority.rawValue, last, maximumCount])
      reading: for row in rows {
        // A lease that has ended still counts until its message goes to another receiver.
        if isFull { return }
        let ready = try ReadyDelivery(row)
        switch try take(ready, priority) {
        case .taken, .passed: last = ready.timetoken.rawValue
        case .dropped:
          // Its ordering key can have made another message ready, before the next of these rows.
          last = ready.timetoken.rawValue
          break reading
        case .refused: return
        }
      }
      if rows.isEmpty { return }
    }
  }

  private enum Outcome {
    case taken
    /// It has to wait for its ordering key.
    case passed
    /// Its time to live has ended.
    case dropped
    /// The batch has no room for it.
    case refused
  }

  private mutating func take(_ ready: ReadyDelivery, _ priority: Priority) throws -> Outcome {
    // This check comes first: a lease that has ended counts until its message's turn, expired or
    // not.
    if let key = ready.orderingKey, try deliveries.mustWait(ready.timetoken, for: key) {
      try deliveries.block(ready.timetoken)
      passedCount += 1
      return .passed
    }
    if let expires = ready.expires, expires <= clock.wallNow {
      try deliveries.delete(ready.timetoken)
      try drop(ready.timetoken)
      return .dropped
    }
    guard hasRoom(for: ready.payload.count) else { return .refused }
    let token = newToken(ready.timetoken)
    var failures = ready.failures
    if ready.endedLease {
      failures = DeliveryFailure(
        attempt: ready.attemptCount, ticks: clock.wallNow, reason: DeliveryFailure.leaseEnded
      ).appended(to: failures)
    }
    let attempt = min(ready.attemptCount + 1, ReadyDelivery.maximumAttemptCount)
    try deliveries.lease(
      ready.timetoken, attempt: attempt, secret: token.secret, clock, failures: failures)
    append(
      Delivery(
        token: token, channel: consumer.channel, payload: ready.payload, headers: ready.headers,
        priority: priority, orderingKey: ready.orderingKey, expirationTicks: ready.expires,
        attempt: attempt, maximumAttempts: consumer.maximumAttempts))
    return .taken
  }

  private mutating func takeNew(_ priority: Priority) throws {
    if isFull || passedCount >= Self.passedAtOnce { return }
    let start =
      try db.number(
        "SELECT timetoken FROM position WHERE consumer_id = ? AND priority = ?", consumer.id,
        priority.rawValue) ?? 0
    var position = start
    var expired: [Timetoken] = []
    let select = try db.cachedStatement(sql: EngineDatabase.selectNew(priority))
    let rows = try Row.fetchCursor(select, arguments: [consumer.channelID, position])
    while passedCount < Self.passedAtOnce, let row = try rows.next() {
      let message = try NewMessage(row)
      if message.priority != priority {
        passedCount += 1
      } else if let expires = message.expires, expires <= clock.wallNow {
        expired.append(message.timetoken)
        passedCount += 1
      } else if let due = message.due, due > clock.wallNow {
        try deliveries.insert(message, due: due, clock)
        passedCount += 1
      } else if let key = message.orderingKey,
        try deliveries.mustWait(message.timetoken, for: key)
      {
        try deliveries.insert(message, isBlocked: true, clock)
        passedCount += 1
      } else {
        let payload = try row.bytes(at: NewMessage.payloadColumn)
        guard hasRoom(for: payload.count) else { break }
        let token = newToken(message.timetoken)
        try deliveries.insert(message, secret: token.secret, clock)
        append(
          Delivery(
            token: token, channel: consumer.channel, payload: payload,
            headers: try HeaderCoding.decode(row[NewMessage.headersColumn]), priority: priority,
            orderingKey: message.orderingKey, expirationTicks: message.expires, attempt: 1,
            maximumAttempts: consumer.maximumAttempts))
      }
      position = message.timetoken.rawValue
      if isFull { break }
    }
    if position != start {
      try db.run(
        "INSERT OR REPLACE INTO position VALUES (?, ?, ?)", consumer.id, priority.rawValue, position
      )
    }
    for timetoken in expired { try drop(timetoken) }
  }

  /// Whether one more message can be taken; if not, the receive is full.
  private mutating func hasRoom(for payloadByteCount: Int) -> Bool {
    isFull =
      reception.deliveries.count == maximumCount
      || !reception.deliveries.isEmpty
        && byteCount + payloadByteCount > tables.configuration.maximumReceiveByteCount
    return !isFull
  }

  private func newToken(_ timetoken: Timetoken) -> LeaseToken {
    LeaseToken(
      consumerID: consumer.id, timetoken: timetoken,
      secret: tables.random.bytes(count: LeaseToken.secretByteCount))
  }

  private mutating func append(_ delivery: Delivery) {
    byteCount += delivery.payload.count
    reception.deliveries.append(delivery)
    isFull = reception.deliveries.count == maximumCount
  }

  /// Drops a message whose time to live has ended from the log, unless the channel keeps messages.
  private mutating func drop(_ timetoken: Timetoken) throws {
    counts.expired += 1
    if !consumer.keepsAcknowledged { try removal.removeUnlessNeeded(timetoken) }
  }
}

/// A row of ``EngineDatabase/selectReady``.
struct ReadyDelivery {
  /// No engine counts so far; what a row says beyond it is taken for this.
  static let maximumAttemptCount = 999_999_999

  let timetoken: Timetoken
  let attemptCount: Int
  /// Whether its last hold was a lease that ended without an answer, not a release or a delay.
  let endedLease: Bool
  let orderingKey: String?
  let failures: String?
  let expires: Int64?
  let headers: [String: String]
  let payload: [UInt8]

  init(_ row: Row) throws {
    timetoken = Timetoken(unchecked: row[0])
    attemptCount = min(row[1], Self.maximumAttemptCount)
    endedLease = row[2]
    orderingKey = row[3]
    failures = row[4]
    expires = row[5]
    headers = try HeaderCoding.decode(row[6])
    payload = try row.bytes(at: 7)
  }
}

/// A row of ``EngineDatabase/selectNew(_:)``, without the columns that only a delivery reads.
struct NewMessage {
  static let headersColumn = 5
  static let payloadColumn = 6

  let timetoken: Timetoken
  let priority: Priority
  let due: Int64?
  let expires: Int64?
  let orderingKey: String?

  init(_ row: Row) throws {
    timetoken = Timetoken(unchecked: row[0])
    priority = Priority(stored: row[1])
    due = row[2]
    expires = row[3]
    orderingKey = row[4]
  }
}
