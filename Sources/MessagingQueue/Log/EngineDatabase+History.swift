package import GRDB

/// The part of a channel's row that readers of its log use.
struct KnownChannel: Sendable {
  /// It is never given to another channel.
  let id: Int64
  let channel: Channel
  /// How far retention or a purge has removed messages.
  let removedThrough: Int64
  /// How many messages were ever published; only its growth has a meaning.
  let publishedCount: Int
}

/// Reads of the log by channel and timetoken, with an index, in the caller's transaction.
extension EngineDatabase {
  package static let selectForward = """
    SELECT timetoken, priority, ordering_key, headers, payload, due, expires FROM message
    WHERE channel_id = ? AND timetoken > ? ORDER BY timetoken LIMIT ?
    """

  package static let selectBackward = """
    SELECT timetoken, priority, ordering_key, headers, payload, due, expires FROM message
    WHERE channel_id = ? AND timetoken < ? ORDER BY timetoken DESC LIMIT ?
    """

  package static let selectOne = """
    SELECT timetoken, priority, ordering_key, headers, payload, due, expires FROM message WHERE timetoken = ?
    """

  package static let countAfter =
    "SELECT count(*) FROM message WHERE channel_id = ? AND timetoken > ? AND timetoken < ?"

  /// One page, in the order of timetokens across all the channels.
  static func page(_ query: LogQuery, _ db: Database) throws -> LogPage {
    let channels = try knownChannels(query.channels, db)
    let cursor = query.cursor ?? (query.order == .oldestFirst ? Int64.min : .max)
    var page = LogPage(query)
    for known in channels {
      page.removedThrough[known.channel] = known.removedThrough
      page.publishedCounts[known.id] = known.publishedCount
    }
    if channels.count == 1, let (id, channel) = channels.first.map({ ($0.id, $0.channel) }) {
      let sql = query.order == .oldestFirst ? selectForward : selectBackward
      let rows = try Row.fetchCursor(
        db.cachedStatement(sql: sql), arguments: [id, cursor, query.maximumCount])
      while let row = try rows.next(), page.append(try message(row, of: channel)) {}
      return page
    }
    let keys = try nearestKeys(
      in: channels.map(\.id), from: cursor, order: query.order, count: query.maximumCount, db)
    let names = Dictionary(uniqueKeysWithValues: channels.map { ($0.id, $0.channel) })
    let select = try db.cachedStatement(sql: selectOne)
    for key in keys {
      guard let channel = names[key.channelID],
        let row = try Row.fetchOne(select, arguments: [key.timetoken]),
        page.append(try message(row, of: channel))
      else { break }
    }
    return page
  }

  /// Whether the log ends with a page that was read in this snapshot, the oldest first.
  static func endsLog(_ page: LogPage, of query: LogQuery, _ db: Database) throws -> Bool {
    guard let last = page.messages.last else { return true }
    let ids = try knownChannels(query.channels, db).map(\.id)
    return try nearestKeys(
      in: ids, from: last.timetoken.rawValue, order: .oldestFirst, count: 1, db
    ).isEmpty
  }

  /// How many messages the channels have between two timetokens, both exclusive.
  static func messageCount(
    of channels: Set<Channel>, after: Int64, before: Int64 = .max, _ db: Database
  ) throws -> Int {
    try knownChannels(channels, db).reduce(0) { sum, channel in
      try sum + Int(db.number(countAfter, channel.id, after, before) ?? 0)
    }
  }

  /// The greatest timetoken that was ever assigned.
  package static func highWater(_ db: Database) throws -> Int64 {
    let highWater = try db.number("SELECT timetoken_high_water FROM engine")
    guard let highWater else { throw EngineError.engineRowMissing }
    return highWater
  }

  /// The channels that exist.
  static func knownChannels(
    _ channels: Set<Channel>, _ db: Database
  ) throws -> [KnownChannel] {
    let select = try db.cachedStatement(
      sql: "SELECT id, removed_through, published_count FROM channel WHERE name = ?")
    return try channels.compactMap { channel in
      try Row.fetchOne(select, arguments: [channel.name]).map {
        KnownChannel(id: $0[0], channel: channel, removedThrough: $0[1], publishedCount: $0[2])
      }
    }
  }

  /// How far the messages of channels went that do not exist and have possibly been removed.
  static func removedThrough(
    ofMissing channels: some Sequence<Channel>, _ db: Database
  ) throws -> [Channel: Int64] {
    var marks: [Channel: Int64] = [:]
    for channel in channels { marks[channel] = try removedChannelsMark(for: channel, db) }
    return marks
  }

  /// A message of a channel; nil if the log does not have it.
  static func message(
    _ timetoken: Timetoken, of channel: Channel, _ db: Database
  ) throws -> LogMessage? {
    guard let known = try knownChannels([channel], db).first else { return nil }
    let select = try db.cachedStatement(sql: "\(selectOne) AND channel_id = ?")
    return try Row.fetchOne(select, arguments: [timetoken.rawValue, known.id]).map {
      try message($0, of: channel)
    }
  }

  static func message(_ row: Row, of channel: Channel) throws -> LogMessage {
    LogMessage(
      timetoken: Timetoken(unchecked: row[0]), channel: channel, payload: try row.bytes(at: 4),
      headers: try HeaderCoding.decode(row[3]), priority: Priority(stored: row[1]),
      orderingKey: row[2], availabilityTicks: row[5], expirationTicks: row[6])
  }
}

/// The place of a message, without its content.
struct LogKey: Sendable {
  let timetoken: Int64
  let channelID: Int64
}

extension EngineDatabase {
  package static let selectKeysForward = """
    SELECT timetoken FROM message
    WHERE channel_id = ? AND timetoken > ? AND timetoken < ? ORDER BY timetoken LIMIT ?
    """

  package static let selectKeysBackward = """
    SELECT timetoken FROM message
    WHERE channel_id = ? AND timetoken < ? AND timetoken > ? ORDER BY timetoken DESC LIMIT ?
    """

  /// The first `count` keys of several channels from the cursor on, in order.
  ///
  /// For `channel_id IN (…) ORDER BY timetoken LIMIT n` SQLite would sort everything after the
  /// cursor. Here each channel gives at most `count` keys from its index, and none beyond the last
  /// key that is already held.
  static func nearestKeys(
    in channelIDs: [Int64], from cursor: Int64, order: HistoryOrder, count: Int, _ db: Database
  ) throws -> [LogKey] {
    let isForward = order == .oldestFirst
    let statement = try db.cachedStatement(
      sql: isForward ? selectKeysForward : selectKeysBackward)
    var nearest: [LogKey] = []
    for channelID in channelIDs {
      let isFull = nearest.count == count
      let bound = isFull ? nearest[count - 1].timetoken : isForward ? Int64.max : .min
      let found = try Int64.fetchAll(statement, arguments: [channelID, cursor, bound, count])
      if found.isEmpty { continue }
      nearest += found.map { LogKey(timetoken: $0, channelID: channelID) }
      nearest.sort {
        isForward ? $0.timetoken < $1.timetoken : $0.timetoken > $1.timetoken
      }
      nearest.removeLast(max(0, nearest.count - count))
    }
    return nearest
  }
}

extension EngineDatabase {
  package static let selectSummaries = """
    SELECT name, message_count,
      (SELECT min(timetoken) FROM message WHERE channel_id = channel.id),
      (SELECT max(timetoken) FROM message WHERE channel_id = channel.id),
      byte_count, removed_through
    FROM channel ORDER BY name
    """

  /// Every channel that was ever published to or has settings, by name.
  static func channelSummaries(_ db: Database) throws -> [ChannelSummary] {
    try Row.fetchAll(db.cachedStatement(sql: selectSummaries)).map { row in
      ChannelSummary(
        channel: Channel(stored: row[0]), messageCount: row[1], byteCount: row[4],
        oldest: (row[2] as Int64?).map(Timetoken.init(unchecked:)),
        newest: (row[3] as Int64?).map(Timetoken.init(unchecked:)),
        removedThrough: row[5] == 0 ? nil : Timetoken(unchecked: row[5]))
    }
  }
}

/// A channel and the contents of its log.
public struct ChannelSummary: Sendable, Hashable {
  /// The channel.
  public let channel: Channel

  /// Messages in the log, whatever the state of their deliveries.
  public let messageCount: Int

  /// The bytes of their payloads and headers.
  public let byteCount: Int

  /// The oldest message.
  public let oldest: Timetoken?

  /// The newest message.
  public let newest: Timetoken?

  /// The newest message that retention or a purge has removed.
  ///
  /// A reader of history with an older cursor has possibly missed messages.
  public let removedThrough: Timetoken?
}
