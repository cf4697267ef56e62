internal import FileLayer
internal import Foundation
internal import GRDB
internal import VaultCrypto

extension EngineDatabase {
  /// Leases up to `maximumCount` messages of a channel to the caller: first those whose lease or
  /// delay is over, the longest over first, then the others in the order of the log.
  ///
  /// Fewer are returned when there are no more, or when their payloads together would go over
  /// ``EngineConfiguration/maximumReceiveByteCount``. Nothing is written when there are none.
  package func receive(
    from channel: Channel, maximumCount: Int, lease: Duration
  ) throws(EngineError) -> [Delivery] {
    try checkReceive(maximumCount: maximumCount, lease: lease)
    return try write(during: "receiving") { db in
      try receive(from: channel, maximumCount: maximumCount, lease: lease, in: db)
    }
  }

  func checkReceive(maximumCount: Int, lease: Duration) throws(EngineError) {
    guard maximumCount > 0 else {
      throw EngineError(
        .invalidArgument, "a receive of \(maximumCount) messages", hint: "ask for at least one")
    }
    guard lease > .zero, lease <= EngineConfiguration.longestHold else {
      throw EngineError(
        .invalidArgument, "a lease of \(lease)", hint: "more than nothing, at most 366 days")
    }
  }

  /// The same as a part of the caller's transaction; the arguments have been checked.
  func receive(
    from channel: Channel, maximumCount: Int, lease: Duration, in db: Database
  ) throws -> [Delivery] {
    guard let channelID = try Self.channelID(channel, making: false, db) else { return [] }
    let now = nanosecondsSinceBoot
    var candidates = Candidates(
      maximumCount: maximumCount, maximumByteCount: configuration.maximumReceiveByteCount)
    try candidates.append(
      from: db.cachedStatement(sql: Self.selectOver),
      arguments: [channelID, bootNumber, now, maximumCount])
    try candidates.append(
      from: db.cachedStatement(sql: Self.selectReady), arguments: [channelID, maximumCount])
    return try self.lease(
      candidates.rows, of: channel, until: now + lease.wholeNanoseconds, db)
  }

  package static let selectOver = """
    SELECT delivery.timetoken, attempt_count, payload
    FROM delivery JOIN message USING (timetoken)
    WHERE delivery.channel_id = ? AND held_until IS NOT NULL AND (held_boot, held_until) <= (?, ?)
    ORDER BY held_boot, held_until, delivery.timetoken LIMIT ?
    """

  package static let selectReady = """
    SELECT delivery.timetoken, attempt_count, payload
    FROM delivery JOIN message USING (timetoken)
    WHERE delivery.channel_id = ? AND held_until IS NULL
    ORDER BY delivery.timetoken LIMIT ?
    """

  private func lease(
    _ rows: [Candidates.Row], of channel: Channel, until deadline: Int64, _ db: Database
  ) throws -> [Delivery] {
    if rows.isEmpty { return [] }
    let update = try db.cachedStatement(
      sql: """
        UPDATE delivery SET attempt_count = ?, lease = ?, held_boot = ?, held_until = ?
        WHERE timetoken = ?
        """)
    let size = LeaseToken.secretByteCount
    let secrets = random.bytes(count: rows.count * size)
    return try rows.enumerated().map { index, row in
      let token = LeaseToken(
        timetoken: row.timetoken, secret: Array(secrets[index * size..<(index + 1) * size]))
      try update.execute(arguments: [
        row.attemptCount + 1, Data(token.secret), bootNumber, deadline, row.timetoken.rawValue,
      ])
      return Delivery(
        token: token, timetoken: row.timetoken, channel: channel, payload: row.payload,
        attempt: row.attemptCount + 1)
    }
  }
}

/// The rows that a receive has chosen, within its limits.
private struct Candidates {
  struct Row {
    let timetoken: Timetoken
    let attemptCount: Int
    let payload: [UInt8]
  }

  private(set) var rows: [Row] = []
  private var byteCount = 0
  private var isFull = false
  private let maximumCount: Int
  private let maximumByteCount: Int

  init(maximumCount: Int, maximumByteCount: Int) {
    self.maximumCount = maximumCount
    self.maximumByteCount = maximumByteCount
  }

  /// Takes rows as they come until a limit is met; the rest is never read.
  mutating func append(from statement: Statement, arguments: StatementArguments) throws {
    if isFull { return }
    let cursor = try GRDB.Row.fetchCursor(statement, arguments: arguments)
    while let row = try cursor.next() {
      let payload = try row.withUnsafeData(atIndex: 2) { [UInt8]($0 ?? Data()) }
      isFull =
        rows.count == maximumCount
        || !rows.isEmpty && byteCount + payload.count > maximumByteCount
      if isFull { return }
      byteCount += payload.count
      rows.append(
        Row(timetoken: Timetoken(unchecked: row[0]), attemptCount: row[1], payload: payload))
    }
  }
}
