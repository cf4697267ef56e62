internal import GRDB

extension EngineDatabase {
  static let maximumAttemptsRange = 1...999_999_999

  /// Adds a consumer that begins with the oldest message of its channel, or changes its limit of
  /// attempts.
  ///
  /// - Parameter maximumAttempts: nil for no limit.
  func addConsumer(
    _ consumer: Consumer, of channel: Channel, maximumAttempts: Int?, in db: Database
  ) throws {
    if let maximumAttempts {
      let range = Self.maximumAttemptsRange
      try EngineError.requireArgument(
        range.contains(maximumAttempts), "the maximum of attempts is \(maximumAttempts)",
        hint: "use \(range.lowerBound) to \(range.upperBound)")
    }
    try db.run(
      """
      INSERT INTO consumer (channel_id, name, most_attempts) VALUES (?, ?, ?)
      ON CONFLICT DO UPDATE SET most_attempts = excluded.most_attempts
      """, Self.makeChannelID(channel, db), consumer.name, maximumAttempts)
  }

  /// Removes a consumer, its deliveries and its dead letters; messages that no other consumer needs
  /// leave the log, unless the channel keeps them.
  ///
  /// To find those messages, this transaction looks at each message of the channel. Its time and
  /// memory grow with the channel's log.
  ///
  /// - Returns: whether the consumer existed.
  func removeConsumer(
    _ consumer: Consumer, of channel: Channel, in db: Database
  ) throws -> Bool {
    guard let record = try ConsumerRecord.find(consumer, of: channel, db) else { return false }
    for table in ["delivery", "dead_letter", "position"] {
      try db.run("DELETE FROM \(table) WHERE consumer_id = ?", record.id)
    }
    try db.run("DELETE FROM consumer WHERE id = ?", record.id)
    // Without a consumer, the channel keeps its messages for later consumers.
    if record.isAlone || record.keepsAcknowledged { return true }
    let timetokens = try Int64.fetchAll(
      db, sql: "SELECT timetoken FROM message WHERE channel_id = ?", arguments: [record.channelID])
    var removal = MessageRemoval(db, channelID: record.channelID)
    for timetoken in timetokens { try removal.removeUnlessNeeded(Timetoken(unchecked: timetoken)) }
    try removal.finish()
    return true
  }

  /// The consumer of a receive; it is added if it is new, and so is its channel, so that the consumer
  /// gets every message that is published later.
  static func receivingConsumer(
    _ consumer: Consumer, of channel: Channel, _ db: Database
  ) throws -> ConsumerRecord? {
    if let record = try ConsumerRecord.find(consumer, of: channel, db) { return record }
    try db.run(
      "INSERT INTO consumer (channel_id, name) VALUES (?, ?)", Self.makeChannelID(channel, db),
      consumer.name)
    return try ConsumerRecord.find(consumer, of: channel, db)
  }
}

/// A consumer with the settings that settling its deliveries needs, read once in a transaction.
struct ConsumerRecord {
  let id: Int64
  let channelID: Int64
  let channel: Channel
  let consumer: Consumer
  /// Nil: the consumer gets a message until it acknowledges it.
  let maximumAttempts: Int?
  /// Whether the log keeps messages that every consumer has acknowledged.
  let keepsAcknowledged: Bool
  /// Whether the channel had no other consumer when this was read.
  let isAlone: Bool

  static func find(_ id: Int64, _ db: Database) throws -> ConsumerRecord? {
    try find("consumer.id = ?", [id], db)
  }

  static func find(
    _ consumer: Consumer, of channel: Channel, _ db: Database
  ) throws -> ConsumerRecord? {
    try find("channel.name = ? AND consumer.name = ?", [channel.name, consumer.name], db)
  }

  /// The consumers of a channel, by their names.
  static func names(of channel: Channel, _ db: Database) throws -> [Consumer] {
    try String.fetchAll(
      db.cachedStatement(
        sql: """
          SELECT consumer.name FROM consumer JOIN channel ON channel.id = channel_id
          WHERE channel.name = ? ORDER BY consumer.name
          """), arguments: [channel.name]
    ).map(Consumer.init(stored:))
  }

  private static func find(
    _ condition: String, _ arguments: StatementArguments, _ db: Database
  ) throws -> ConsumerRecord? {
    let select = try db.cachedStatement(
      sql: """
        SELECT consumer.id, channel_id, channel.name, consumer.name, most_attempts,
          keeps_acknowledged,
          (SELECT count(*) FROM consumer AS other WHERE other.channel_id = channel.id)
        FROM consumer JOIN channel ON channel.id = channel_id WHERE \(condition)
        """)
    return try Row.fetchOne(select, arguments: arguments).map(ConsumerRecord.init)
  }

  private init(_ row: Row) {
    id = row[0]
    channelID = row[1]
    channel = Channel(stored: row[2])
    consumer = Consumer(stored: row[3])
    maximumAttempts = row[4]
    keepsAcknowledged = row[5]
    isAlone = row[6] == 1
  }
}
