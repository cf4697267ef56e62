internal import FileLayer
internal import GRDB

/// Looks at single messages, and takes them out.
extension EngineDatabase {
  /// A message of a channel with the states of its consumers; nil if the log does not have it.
  func state(
    of timetoken: Timetoken, in channel: Channel, _ db: Database
  ) throws -> MessageState? {
    guard let message = try Self.message(timetoken, of: channel, db) else { return nil }
    let select = try db.cachedStatement(
      sql: """
        SELECT consumer.name, consumer.most_attempts,
          ifnull(position.timetoken, 0) >= ?1 AS is_passed,
          delivery.timetoken IS NOT NULL AS is_held, delivery.attempt_count AS attempts,
          delivery.lease IS NOT NULL AS is_leased, delivery.held_boot, delivery.held_until,
          delivery.due, ifnull(delivery.is_blocked, 0) AS is_blocked, delivery.failures,
          dead_letter.reason, dead_letter.attempt_count AS dead_attempts,
          dead_letter.failures AS dead_failures
        FROM consumer JOIN channel ON channel.id = consumer.channel_id
          LEFT JOIN position ON position.consumer_id = consumer.id AND position.priority = ?2
          LEFT JOIN delivery ON delivery.consumer_id = consumer.id AND delivery.timetoken = ?1
          LEFT JOIN dead_letter ON dead_letter.consumer_id = consumer.id AND dead_letter.timetoken = ?1
        WHERE channel.name = ?3 ORDER BY consumer.name
        """)
    let arguments: StatementArguments = [
      timetoken.rawValue, message.priority.rawValue, channel.name,
    ]
    return MessageState(
      message: message,
      consumers: try Row.fetchAll(select, arguments: arguments).map { row in
        let reason: String? = row["reason"]
        return MessageState.ConsumerState(
          consumer: Consumer(stored: row["name"]),
          delivery: reason.map { .deadLetter(reason: $0) } ?? delivery(of: message, row),
          attemptCount: row["attempts"] ?? row["dead_attempts"] ?? 0,
          maximumAttempts: row["most_attempts"],
          failures: DeliveryFailure.list(row["failures"] ?? row["dead_failures"]))
      })
  }

  /// The state of a message that is no dead letter of the row's consumer.
  private func delivery(of message: LogMessage, _ row: Row) -> DeliveryState {
    let now = WallTime.ticks(of: time.now)
    if !row["is_held"], row["is_passed"] { return .acknowledged }
    let held: Int64? = row["held_until"]
    if let held, row["held_boot"] == bootNumber, held > nanosecondsSinceBoot {
      let rest = Duration.nanoseconds(held - nanosecondsSinceBoot)
      return row["is_leased"] ? .leased(rest) : .delayed(rest)
    }
    if let expires = message.expirationTicks, expires <= now { return .expired }
    // A message that no receive has passed has its delay in the log alone.
    let due: Int64? = row["is_held"] ? row["due"] : message.availabilityTicks
    if let due, due > now { return .delayed(.nanoseconds(100) * (due - now)) }
    return row["is_blocked"] ? .waiting : .ready
  }

  /// Takes messages out of the log and from every consumer that has not settled them.
  ///
  /// - Returns: those that it removed: they were there, and no consumer had them leased or among its dead letters.
  func cancel(
    _ timetokens: [Timetoken], of channel: Channel, in db: Database
  ) throws -> [Timetoken] {
    guard let known = try Self.knownChannels([channel], db).first else { return [] }
    var removal = MessageRemoval(db, channelID: known.id)
    let cancelled = try timetokens.filter { timetoken in
      guard let state = try state(of: timetoken, in: channel, db),
        !state.consumers.contains(where: \.delivery.keepsMessage)
      else { return false }
      try removal.cancel(timetoken)
      return true
    }
    try removal.finish()
    // Another message with the same ordering key can be ready now.
    notifier.announceReturn(to: channel)
    return cancelled
  }
}

extension DeliveryState {
  /// Whether the message cannot be cancelled.
  fileprivate var keepsMessage: Bool {
    switch self {
    case .leased, .deadLetter: true
    default: false
    }
  }
}
