internal import GRDB

/// A channel with its consumers, for the export of its messages.
struct ChannelExport {
  let exported: ExportedChannel
  let messageCount: Int
  private(set) var consumers: [ConsumerExport] = []

  /// The channels by their numbers.
  ///
  /// - Parameter chosen: nil for all; each channel must exist.
  static func all(_ chosen: Set<Channel>?, _ db: Database) throws -> [Int64: ChannelExport] {
    var channels: [Int64: ChannelExport] = [:]
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT id, name, message_count, removed_through, \(Retention.columns) FROM channel
        """)
    while let row = try rows.next() {
      let channel = Channel(stored: row[1])
      if let chosen, !chosen.contains(channel) { continue }
      channels[row[0]] = ChannelExport(
        exported: ExportedChannel(
          channel: channel, retention: Retention(row), removedThrough: row[3]),
        messageCount: row[2])
    }
    let found = channels.values.map(\.exported.channel)
    if let missing = chosen?.subtracting(found).map(\.name).min() {
      throw EngineError(
        .channelMissing, "channel '\(missing)' not found",
        hint: "list the channels with datavault queue channels")
    }
    let consumers = try Row.fetchCursor(
      db, sql: "SELECT id, channel_id, name, most_attempts FROM consumer ORDER BY id")
    while let row = try consumers.next() {
      guard let channel = channels[row[1]]?.exported.channel else { continue }
      let exported = ExportedConsumer(
        channel: channel, consumer: Consumer(stored: row[2]), maximumAttempts: row[3])
      channels[row[1]]?.consumers.append(
        ConsumerExport(
          id: row[0], exported: exported, positions: try EngineDatabase.positions(of: row[0], db)))
    }
    return channels
  }
}

/// One consumer, whose rows tell what it has done with a message.
struct ConsumerExport {
  let id: Int64
  let exported: ExportedConsumer
  /// Its positions, by priority.
  let positions: [Int: Int64]

  func addState(to message: inout ExportedMessage, _ db: Database) throws {
    guard let position = positions[message.priority.rawValue], position >= message.timetoken else {
      return
    }
    let selectDelivery = try db.cachedStatement(
      sql: """
        SELECT attempt_count, lease IS NOT NULL, due, failures FROM delivery
        WHERE consumer_id = ? AND timetoken = ?
        """)
    if let row = try Row.fetchOne(selectDelivery, arguments: [id, message.timetoken]) {
      message.deliveries.append(
        ExportedMessage.Delivery(
          consumer: exported.consumer, attemptCount: row[0], isLeased: row[1],
          due: row[2], failures: DeliveryFailure.list(row[3])))
      return
    }
    let selectDead = try db.cachedStatement(
      sql: """
        SELECT attempt_count, reason, died, failures FROM dead_letter
        WHERE consumer_id = ? AND timetoken = ?
        """)
    if let row = try Row.fetchOne(selectDead, arguments: [id, message.timetoken]) {
      message.deadLetters.append(
        ExportedMessage.DeadLetter(
          consumer: exported.consumer, attemptCount: row[0], reason: row[1], died: row[2],
          failures: DeliveryFailure.list(row[3])))
      return
    }
    message.settledBy.append(exported.consumer)
  }
}
