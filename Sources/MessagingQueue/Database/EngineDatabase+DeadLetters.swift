package import GRDB

extension EngineDatabase {
  /// A consumer's dead letters after `timetoken`, in the order of the log.
  package func deadLetters(
    of channel: Channel, for consumer: Consumer, after timetoken: Timetoken?, maximumCount: Int,
    in db: Database
  ) throws -> [DeadLetter] {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return [] }
    let select = try db.cachedStatement(
      sql: """
        SELECT timetoken, attempt_count, reason, died, failures, headers, payload
        FROM dead_letter JOIN message USING (timetoken)
        WHERE consumer_id = ? AND timetoken > ? ORDER BY timetoken LIMIT ?
        """)
    let arguments: StatementArguments = [record.id, timetoken?.rawValue ?? 0, maximumCount]
    return try Row.fetchAll(select, arguments: arguments).map { row in
      DeadLetter(
        timetoken: Timetoken(unchecked: row[0]), channel: record.channel,
        consumer: record.consumer, payload: try row.bytes(at: 6),
        headers: try HeaderCoding.decode(row[5]), attemptCount: row[1], reason: row[2],
        deadLetteredTicks: row[3], failures: DeliveryFailure.list(row[4]))
    }
  }

  /// Returns dead letters to their consumer: ready immediately, with no attempts counted and their
  /// history kept.
  ///
  /// - Parameter timetokens: the dead letters to return; nil for all.
  /// - Returns: how many were returned.
  func redrive(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer, in db: Database
  ) throws -> Int {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return 0 }
    let count = try takeDeadLetters(timetokens, of: record, db) { timetoken, failures in
      try db.run(
        """
        INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count,
          is_blocked, failures)
        SELECT ?, timetoken, priority, ordering_key, 0, 0, ? FROM message WHERE timetoken = ?
        """, record.id, failures, timetoken.rawValue)
      notifier.announceReturn(to: channel)
    }
    commitCounter?.note { $0.redriven += count }
    return count
  }

  /// Removes dead letters; their messages leave the log if no other consumer needs them, unless the
  /// channel keeps them.
  ///
  /// - Parameter timetokens: the dead letters to remove; nil for all.
  /// - Returns: how many were removed.
  func removeDeadLetters(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer, in db: Database
  ) throws -> Int {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return 0 }
    var removal = MessageRemoval(db, channelID: record.channelID)
    let count = try takeDeadLetters(timetokens, of: record, db) { timetoken, _ in
      if !record.keepsAcknowledged { try removal.removeUnlessNeeded(timetoken) }
    }
    try removal.finish()
    return count
  }

  /// Removes dead letters and publishes their messages to another channel.
  ///
  /// The messages keep content, priority and ordering key, and get new timetokens.
  ///
  /// - Parameter maximumCount: the most to move, the oldest first.
  /// - Returns: how many were moved.
  func moveDeadLetters(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer, to target: Channel,
    maximumCount: Int, in publication: inout Publication?, _ db: Database
  ) throws -> Int {
    let letters = try copiesOfDeadLetters(
      timetokens, of: channel, for: consumer, to: target, maximumCount: maximumCount, db)
    let count = try removeDeadLetters(letters.map(\.timetoken), of: channel, for: consumer, in: db)
    _ = try publish(letters.map(\.copy), in: &publication, db)
    return count
  }

  /// Dead letters with the messages that they become in another channel.
  ///
  /// - Parameter timetokens: nil for the oldest, at most `maximumCount`.
  func copiesOfDeadLetters(
    _ timetokens: [Timetoken]?, of channel: Channel, for consumer: Consumer, to target: Channel,
    maximumCount: Int, _ db: Database
  ) throws -> [(timetoken: Timetoken, copy: Message)] {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return [] }
    let chosen =
      try timetokens
      ?? deadLetters(
        of: channel, for: consumer, after: nil, maximumCount: maximumCount, in: db
      ).map(\.timetoken)
    return try chosen.compactMap { timetoken in
      guard
        try db.number(
          "SELECT 1 FROM dead_letter WHERE consumer_id = ? AND timetoken = ?", record.id,
          timetoken.rawValue) != nil,
        let message = try Self.message(timetoken, of: channel, db)
      else { return nil }
      // The log takes the copy and the removal one after the other: a repeated command must not add the copy again.
      let id = isReplicated ? "moved/\(record.id)/\(timetoken)" : nil
      let copy = Message(
        channel: target, payload: message.payload, headers: message.headers,
        priority: message.priority, orderingKey: message.orderingKey, deduplicationID: id)
      return (timetoken, copy)
    }
  }

  private func takeDeadLetters(
    _ timetokens: [Timetoken]?, of record: ConsumerRecord, _ db: Database,
    _ body: (Timetoken, String?) throws -> Void
  ) throws -> Int {
    let all = try db.cachedStatement(
      sql: "SELECT timetoken FROM dead_letter WHERE consumer_id = ? ORDER BY timetoken")
    let chosen =
      try timetokens?.map(\.rawValue).sorted() ?? Int64.fetchAll(all, arguments: [record.id])
    let delete = try db.cachedStatement(
      sql: "DELETE FROM dead_letter WHERE consumer_id = ? AND timetoken = ? RETURNING failures")
    var count = 0
    for timetoken in chosen {
      guard let row = try Row.fetchOne(delete, arguments: [record.id, timetoken]) else { continue }
      try body(Timetoken(unchecked: timetoken), row[0])
      count += 1
    }
    return count
  }
}
