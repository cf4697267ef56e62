package import GRDB

extension EngineDatabase {
  /// Makes a consumer that begins with the oldest message of its channel, or changes how often one
  /// that is there gets a message.
  ///
  /// - Parameter maximumAttempts: nil for no limit.
  package func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int?, in db: Database
  ) throws {
    if let maximumAttempts, maximumAttempts < 1 {
      throw EngineError(
        .invalidArgument, "a consumer with \(maximumAttempts) attempts", hint: "at least one")
    }
    try db.cachedStatement(
      sql: """
        INSERT INTO consumer (channel_id, name, most_attempts) VALUES (?, ?, ?)
        ON CONFLICT DO UPDATE SET most_attempts = excluded.most_attempts
        """
    ).execute(arguments: [
      Self.makeChannelID(channel, db), consumer.name, maximumAttempts,
    ])
  }

  /// Forgets a consumer, its deliveries and its dead letters; what nobody else needs leaves the log,
  /// unless the channel keeps it.
  ///
  /// - Returns: Whether there was one.
  package func removeConsumer(
    _ consumer: Consumer, of channel: Channel, in db: Database
  ) throws -> Bool {
    guard let channelID = try Self.channelID(channel, db),
      let record = try ConsumerRecord.find(consumer, channelID: channelID, db)
    else { return false }
    for table in ["delivery", "dead_letter", "position"] {
      try db.cachedStatement(sql: "DELETE FROM \(table) WHERE consumer_id = ?")
        .execute(arguments: [record.id])
    }
    try db.cachedStatement(sql: "DELETE FROM consumer WHERE id = ?").execute(arguments: [record.id])
    // Without another consumer the rest is a log that nobody reads yet: it stays.
    if record.isAlone || record.keepsAcknowledged { return true }
    let timetokens = try Int64.fetchAll(
      db, sql: "SELECT timetoken FROM message WHERE channel_id = ?", arguments: [channelID])
    var removal = MessageRemoval(db, channelID: channelID)
    for timetoken in timetokens { try removal.removeUnlessNeeded(Timetoken(unchecked: timetoken)) }
    try removal.finish()
    return true
  }

  /// The consumer of a receive, which is made if it is new; nil if its channel is not there.
  static func receivingConsumer(
    _ consumer: Consumer, of channel: Channel, _ db: Database
  ) throws -> ConsumerRecord? {
    guard let channelID = try channelID(channel, db) else { return nil }
    if let record = try ConsumerRecord.find(consumer, channelID: channelID, db) { return record }
    try db.cachedStatement(sql: "INSERT INTO consumer (channel_id, name) VALUES (?, ?)")
      .execute(arguments: [channelID, consumer.name])
    return try ConsumerRecord.find(consumer, channelID: channelID, db)
  }
}
