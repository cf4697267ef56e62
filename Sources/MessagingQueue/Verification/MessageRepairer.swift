internal import Foundation
package import GRDB

/// Makes the rows of a salvaged database consistent, in one transaction.
///
/// In case of doubt, it has a message delivered again rather than lost.
package struct MessageRepairer {
  private let db: Database
  private var result = MessageRepairReport()

  private init(_ db: Database) { self.db = db }

  /// Repairs the rows that a salvage has copied.
  ///
  /// - Parameter lostDeliveries: whether rows of `delivery` are lost; a message before a position
  ///   is then possibly unsettled.
  /// - Throws: `damaged` if neither the table of messages nor that of channels is readable.
  package static func run(_ pool: DatabasePool, lostDeliveries: Bool) throws -> MessageRepairReport
  {
    try pool.writeWithoutTransaction { db in
      var result = MessageRepairReport()
      try db.inTransaction(.immediate) {
        var repairer = MessageRepairer(db)
        try repairer.rebuildSchema()
        try repairer.dropUnreadable()
        try repairer.recoverChannels()
        try repairer.dropOrphans()
        try repairer.repairPositions(lostDeliveries: lostDeliveries)
        try repairer.repairEngineRow()
        try repairer.countChannels()
        result = repairer.result
        return .commit
      }
      return result
    }
  }

  /// Makes missing tables and indexes, and migrates the rest.
  private mutating func rebuildSchema() throws {
    try EngineSchema.requireNoNewerVersion(db)
    let names = try EngineSchema.entries(of: db)
    guard names["message"] != nil, names["channel"] != nil else {
      throw EngineError(
        .damaged, "neither the table of messages nor that of channels could be read",
        hint: "keep the files unchanged; run datavault database salvage to copy single rows")
    }
    // If the version is lost, the columns show it.
    let columns = try db.columns(in: "channel").map(\.name)
    if !columns.contains("published_count") {
      try db.execute(
        sql: """
          PRAGMA user_version = 1;
          PRAGMA application_id = \(EngineSchema.applicationID);
          """)
      try EngineSchema.migrate(db)
    }
    let found = try EngineSchema.entries(of: db)
    for (name, sql) in try EngineSchema.expectedEntries() where found[name] == nil {
      try db.execute(sql: sql)
      if sql.hasPrefix("CREATE TABLE") { result.rebuiltTables.append(name) }
    }
    try db.execute(
      sql: """
        PRAGMA user_version = \(EngineSchema.migrations.count);
        PRAGMA application_id = \(EngineSchema.applicationID);
        """)
  }

  private mutating func dropUnreadable() throws {
    var unreadable = try Int64.fetchAll(
      db,
      sql:
        "SELECT timetoken FROM message WHERE timetoken NOT BETWEEN ? AND ? OR priority NOT BETWEEN 0 AND 9",
      arguments: [Timetoken.smallest.rawValue, Timetoken.greatest.rawValue])
    let rows = try Row.fetchCursor(
      db, sql: "SELECT timetoken, headers FROM message WHERE headers IS NOT NULL")
    while let row = try rows.next() {
      if (try? HeaderCoding.decode(row[1])) == nil { unreadable.append(row[0]) }
    }
    for timetoken in unreadable {
      try db.execute(sql: "DELETE FROM message WHERE timetoken = ?", arguments: [timetoken])
    }
    result.unreadableMessageCount = Set(unreadable).count
  }

  /// Gives messages whose channel is lost a channel with a new, unused name.
  private mutating func recoverChannels() throws {
    let lost = try Int64.fetchAll(
      db,
      sql: """
        SELECT DISTINCT channel_id FROM message WHERE channel_id NOT IN (SELECT id FROM channel)
        """)
    for id in lost {
      var name = "recovered-\(id)"
      while try Bool.fetchOne(
        db, sql: "SELECT EXISTS (SELECT 1 FROM channel WHERE name = ?)", arguments: [name]) == true
      {
        name += "-again"
      }
      try db.execute(
        sql: "INSERT INTO channel (id, name, message_count) VALUES (?, ?, -1)",
        arguments: [id, name])
    }
  }

  private mutating func dropOrphans() throws {
    for (table, condition) in [
      ("consumer", "channel_id NOT IN (SELECT id FROM channel)"),
      ("position", "consumer_id NOT IN (SELECT id FROM consumer)"),
      ("delivery", Self.lacksMessage("delivery")),
      ("dead_letter", Self.lacksMessage("dead_letter")),
      ("deduplication", "channel_id NOT IN (SELECT id FROM channel)"),
      (
        "delivery",
        """
        EXISTS (SELECT 1 FROM dead_letter AS dead WHERE dead.consumer_id = delivery.consumer_id
          AND dead.timetoken = delivery.timetoken)
        """
      ),
    ] {
      try db.execute(sql: "DELETE FROM \(table) WHERE \(condition)")
      result.orphanedRowCount += db.changesCount
    }
  }

  private static func lacksMessage(_ table: String) -> String {
    """
    NOT EXISTS (SELECT 1 FROM message JOIN consumer USING (channel_id)
      WHERE message.timetoken = \(table).timetoken AND consumer.id = \(table).consumer_id)
    """
  }

  /// Moves a position to where its consumer's rows reach; messages that it thereby passes are
  /// delivered.
  private mutating func repairPositions(lostDeliveries: Bool) throws {
    let behind = try Row.fetchAll(
      db,
      sql: """
        SELECT consumer_id, channel_id, priority, max(timetoken),
          ifnull((SELECT timetoken FROM position WHERE position.consumer_id = reached.consumer_id
            AND position.priority = reached.priority), 0) AS stored
        FROM (
          SELECT consumer_id, priority, timetoken FROM delivery
          UNION ALL SELECT consumer_id, message.priority, timetoken
          FROM dead_letter JOIN message USING (timetoken)
        ) AS reached JOIN consumer ON consumer.id = consumer_id
        GROUP BY consumer_id, priority HAVING max(timetoken) > stored
        """)
    for row in behind {
      let (consumer, channel, priority): (Int64, Int64, Int) = (row[0], row[1], row[2])
      let (reached, stored): (Int64, Int64) = (row[3], row[4])
      try redeliver(to: consumer, channel, priority, after: stored, through: reached)
      try db.execute(
        sql: "INSERT OR REPLACE INTO position VALUES (?, ?, ?)",
        arguments: [consumer, priority, reached])
    }
    if lostDeliveries {
      let passed = try Row.fetchAll(
        db,
        sql: """
          SELECT consumer.id, channel_id, priority, position.timetoken
          FROM position JOIN consumer ON consumer.id = consumer_id
          JOIN channel ON channel.id = channel_id WHERE keeps_acknowledged = 0
          """)
      for row in passed {
        try redeliver(to: row[0], row[1], row[2], after: 0, through: row[3])
      }
    }
    // Taking a message checks again whether it must wait for its key.
    try db.execute(sql: "UPDATE delivery SET is_blocked = 0 WHERE is_blocked <> 0")
  }

  private mutating func redeliver(
    to consumer: Int64, _ channel: Int64, _ priority: Int, after: Int64, through: Int64
  ) throws {
    try db.execute(
      sql: """
        INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, is_blocked)
        SELECT ?1, timetoken, priority, ordering_key, 0, 0 FROM message
        WHERE channel_id = ?2 AND priority = ?3 AND timetoken > ?4 AND timetoken <= ?5
          AND NOT EXISTS (SELECT 1 FROM delivery
            WHERE consumer_id = ?1 AND delivery.timetoken = message.timetoken)
          AND NOT EXISTS (SELECT 1 FROM dead_letter
            WHERE consumer_id = ?1 AND dead_letter.timetoken = message.timetoken)
        """, arguments: [consumer, channel, priority, after, through])
    result.redeliveredCount += db.changesCount
  }

  private mutating func repairEngineRow() throws {
    if try Int.fetchOne(db, sql: "SELECT count(*) FROM engine") == 0 {
      result.rebuiltEngineRow = true
      try db.execute(
        sql: """
          INSERT INTO engine VALUES (1, 1, 9999999999999999,
            ifnull((SELECT max(held_boot) FROM delivery), 0) + 1, '', x'')
          """)
    }
    if try Int.fetchOne(db, sql: "SELECT count(*) FROM identity") == 0 {
      try db.execute(sql: "INSERT INTO identity VALUES (1, lower(hex(randomblob(16))))")
    }
    try db.execute(
      sql: """
        UPDATE engine SET commit_number = commit_number + 1,
          boot_number = max(boot_number, ifnull((SELECT max(held_boot) FROM delivery), 0)),
          timetoken_high_water = max(timetoken_high_water,
            ifnull((SELECT max(timetoken) FROM message), 0),
            ifnull((SELECT max(timetoken) FROM position), 0),
            ifnull((SELECT max(timetoken) FROM deduplication), 0),
            ifnull((SELECT max(removed_through) FROM channel), 0))
        """)
  }

  private mutating func countChannels() throws {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT channel.id, name, message_count, count(timetoken),
          ifnull(sum(length(payload) + ifnull(length(headers), 0)), 0)
        FROM channel LEFT JOIN message ON channel_id = channel.id GROUP BY channel.id ORDER BY name
        """)
    for row in rows {
      let (counted, found): (Int, Int) = (row[2], row[3])
      result.channels.append(
        MessageRepairReport.Channel(
          channel: row[1], messageCount: found,
          lostMessageCount: counted < 0 ? nil : max(counted - found, 0)))
      try db.execute(
        sql: """
          UPDATE channel SET message_count = ?1, byte_count = ?2,
            published_count = max(published_count, ?1) WHERE id = ?3
          """, arguments: [found, row[4] as Int, row[0] as Int64])
    }
  }
}

/// The changes of a repair to the rows of a salvaged database: `docs/reference/verify-and-salvage.md`,
/// "Messages".
public struct MessageRepairReport: Sendable, Hashable, Codable {
  /// The part of one channel.
  public struct Channel: Sendable, Hashable, Codable {
    /// The name; `recovered-N` if the name is lost.
    public let channel: String
    /// Messages in the repaired database.
    public let messageCount: Int
    /// Messages that are lost, by the channel's own count; nil if its row is lost too.
    public let lostMessageCount: Int?
  }

  /// The channels, by name.
  public internal(set) var channels: [Channel] = []
  /// Messages that were dropped because they cannot be read.
  public internal(set) var unreadableMessageCount = 0
  /// Rows of consumers, deliveries, dead letters and the like that referred to lost rows.
  public internal(set) var orphanedRowCount = 0
  /// Messages that a consumer gets, possibly again, as the record of its deliveries is lost.
  public internal(set) var redeliveredCount = 0
  /// Whether the engine's row was lost and was rebuilt from the other rows.
  public internal(set) var rebuiltEngineRow = false
  /// Tables of the engine that were lost with all their rows, and were made again.
  public internal(set) var rebuiltTables: [String] = []

  /// Whether no message is lost, as far as the rows show.
  public var isComplete: Bool {
    unreadableMessageCount == 0 && orphanedRowCount == 0 && redeliveredCount == 0
      && !rebuiltEngineRow
      && rebuiltTables.isEmpty && channels.allSatisfy { $0.lostMessageCount == 0 }
  }
}
