internal import Foundation
package import GRDB

/// Makes the rows of a salvaged database consistent, in one transaction.
///
/// In case of doubt, it has a message delivered again rather than lost.
package struct MessageRepairer {
  /// The table that says that a member's home was salvaged.
  package static let memberMark = "replication_salvaged"

  private let db: Database
  private var result = MessageRepairReport()

  private init(_ db: Database) { self.db = db }

  /// Repairs the rows that a salvage has copied.
  ///
  /// - Parameter lostDeliveries: whether rows of `delivery` or `dead_letter` are lost. A message before
  ///   a position can then be unsettled, and is delivered again.
  /// - Throws: `damaged` if neither the table of messages nor that of channels is readable.
  package static func run(_ pool: DatabasePool, lostDeliveries: Bool) throws -> MessageRepairReport
  {
    try pool.write { db in
      var repairer = MessageRepairer(db)
      try repairer.rebuildSchema()
      try repairer.dropUnreadable()
      try repairer.correctValues()
      try repairer.recoverChannels()
      try repairer.dropOrphans()
      try repairer.repairPositions(lostDeliveries: lostDeliveries)
      try repairer.repairEngineRow()
      try repairer.countChannels()
      return repairer.result
    }
  }

  /// Drops foreign triggers, migrates tables of an older version, and creates missing tables and
  /// indexes.
  private mutating func rebuildSchema() throws {
    try EngineSchema.requireNoNewerVersion(db)
    for trigger in try EngineSchema.foreignTriggers(of: db) {
      try db.execute(
        sql: "DROP TRIGGER \"\(trigger.replacing("\"", with: "\"\""))\"")
      result.removedTriggers.append(trigger)
    }
    let names = try EngineSchema.entries(of: db)
    guard names["message"] != nil, names["channel"] != nil else {
      throw EngineError.noTableOfMessages
    }
    // The version can be lost, and a table copied without its schema is new: the columns show what is missing.
    for (version, table, column) in [
      (2, "channel", "published_count"), (3, "engine", "most_bytes"),
    ]
    where try names[table] != nil && !db.columns(in: table).map(\.name).contains(column) {
      try db.execute(sql: EngineSchema.migrations[version - 1])
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
    // Rows that are missing here would make the member's later rows differ from those of all others.
    if names["replication_state"] != nil {
      try db.execute(sql: "CREATE TABLE IF NOT EXISTS \(Self.memberMark) (id INTEGER) STRICT")
    }
  }

  /// Deletes messages whose timetoken, priority or headers cannot be read.
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

  /// Replaces values that no engine writes by values that an engine could have written.
  ///
  /// Such values can make an engine fail. In doubt a message is delivered again rather than never.
  private mutating func correctValues() throws {
    try correctNames()
    try correctFailures("delivery")
    try correctFailures("dead_letter")
    let greatest = try greatestTimetoken()
    let timetokens = "BETWEEN 0 AND \(greatest)"
    let counts = "BETWEEN 0 AND \(EngineSchema.counts.upperBound)"
    let attempts = "BETWEEN 0 AND \(ReadyDelivery.maximumAttemptCount)"
    let anchors = "length(anchors) % \(EngineAnchorStorage.entryByteCount) <> 0"
    for sql in [
      "DELETE FROM engine WHERE id <> 1",
      "DELETE FROM identity WHERE id <> 1",
      "UPDATE engine SET commit_number = 0, anchors = x'' WHERE commit_number NOT \(counts) OR \(anchors)",
      "UPDATE engine SET boot_number = 0, boot_id = '' WHERE boot_number NOT \(counts)",
      "UPDATE engine SET most_bytes = NULL WHERE most_bytes < 1",
      """
      UPDATE engine SET timetoken_high_water = \(Timetoken.smallest.rawValue - 1)
      WHERE timetoken_high_water NOT BETWEEN \(Timetoken.smallest.rawValue - 1)
        AND \(Timetoken.greatest.rawValue)
      """,
      """
      UPDATE channel SET keeps_acknowledged = keeps_acknowledged <> 0,
        discards_unacknowledged = discards_unacknowledged <> 0
      WHERE keeps_acknowledged NOT IN (0, 1) OR discards_unacknowledged NOT IN (0, 1)
      """,
      "UPDATE channel SET longest_age = NULL WHERE longest_age < 0",
      "UPDATE channel SET most_messages = NULL WHERE most_messages < 0",
      "UPDATE channel SET most_bytes = NULL WHERE most_bytes < 0",
      "UPDATE channel SET removed_through = 0 WHERE removed_through < 0",
      """
      UPDATE channel SET removed_through = \(greatest) WHERE removed_through > \(greatest)
        AND (removed_through > \(Timetoken.greatest.rawValue)
          OR NOT EXISTS (SELECT 1 FROM import WHERE is_complete = 0))
      """,
      "UPDATE channel SET published_count = 0 WHERE published_count NOT \(counts)",
      "UPDATE consumer SET most_attempts = NULL WHERE most_attempts < 1",
      "UPDATE message SET ordering_key = NULL WHERE ordering_key IS NOT NULL AND priority <> 4",
      "DELETE FROM position WHERE priority NOT BETWEEN 0 AND 9 OR timetoken NOT \(timetokens)",
      """
      UPDATE delivery SET (priority, ordering_key) =
        (SELECT priority, ordering_key FROM message WHERE message.timetoken = delivery.timetoken)
      WHERE EXISTS (SELECT 1 FROM message WHERE message.timetoken = delivery.timetoken
        AND (message.priority <> delivery.priority
          OR message.ordering_key IS NOT delivery.ordering_key))
      """,
      """
      UPDATE delivery SET held_boot = NULL, held_until = NULL
      WHERE held_boot NOT \(counts) OR held_until < 0
      """,
      "UPDATE delivery SET lease = NULL WHERE length(lease) <> \(LeaseToken.secretByteCount)",
      """
      UPDATE delivery SET attempt_count = lease IS NOT NULL
      WHERE attempt_count NOT \(attempts) OR (lease IS NOT NULL AND attempt_count = 0)
      """,
      "UPDATE dead_letter SET attempt_count = 0 WHERE attempt_count NOT \(attempts)",
      "DELETE FROM deduplication WHERE timetoken NOT \(timetokens)",
      "DELETE FROM import WHERE line_count < 0 OR length(digest) <> 32",
    ] { try correct(sql) }
  }

  /// The greatest timetoken that was assigned, by the engine's row and the messages.
  ///
  /// If that row is lost or impossible, it is the greatest possible timetoken.
  private func greatestTimetoken() throws -> Int64 {
    let highWater = try Int64.fetchOne(
      db,
      sql: """
        SELECT timetoken_high_water FROM engine
        WHERE id = 1 AND timetoken_high_water BETWEEN ? AND ?
        """,
      arguments: [Timetoken.smallest.rawValue - 1, Timetoken.greatest.rawValue])
    guard let highWater else { return Timetoken.greatest.rawValue }
    return max(highWater, try Int64.fetchOne(db, sql: "SELECT max(timetoken) FROM message") ?? 0)
  }

  private mutating func correct(_ sql: String, _ arguments: StatementArguments = []) throws {
    try db.execute(sql: sql, arguments: arguments)
    result.correctedRowCount += db.changesCount
  }

  private mutating func correctNames() throws {
    for table in ["channel", "consumer"] {
      for row in try Row.fetchAll(db, sql: "SELECT id, name FROM \(table)")
      where Name.fault(in: row[1]) != nil {
        let id: Int64 = row[0]
        try correct(
          "UPDATE \(table) SET name = ? WHERE id = ?", [try freeName(for: id, in: table), id])
      }
    }
    for (column, table, sql) in [
      ("ordering_key", "message", "UPDATE message SET ordering_key = NULL WHERE ordering_key = ?"),
      ("id", "deduplication", "DELETE FROM deduplication WHERE id = ?"),
    ] {
      let names = try String.fetchAll(
        db, sql: "SELECT DISTINCT \(column) FROM \(table) WHERE \(column) IS NOT NULL")
      for name in names where Name.fault(in: name) != nil { try correct(sql, [name]) }
    }
  }

  private mutating func correctFailures(_ table: String) throws {
    let rows = try Row.fetchAll(
      db, sql: "SELECT consumer_id, timetoken, failures FROM \(table) WHERE failures IS NOT NULL")
    for row in rows where DeliveryFailure.list(row[2]).isEmpty {
      try correct(
        "UPDATE \(table) SET failures = NULL WHERE consumer_id = ? AND timetoken = ?",
        [row[0] as Int64, row[1] as Int64])
    }
  }

  /// An unused name for a channel or consumer whose own name is lost.
  private func freeName(for id: Int64, in table: String) throws -> String {
    var name = "recovered-\(id)"
    while try Bool.fetchOne(
      db, sql: "SELECT EXISTS (SELECT 1 FROM \(table) WHERE name = ?)", arguments: [name]) == true
    {
      name += "-again"
    }
    return name
  }

  /// Gives messages whose channel is lost a channel with a new, unused name.
  private mutating func recoverChannels() throws {
    let lost = try Int64.fetchAll(
      db,
      sql: """
        SELECT DISTINCT channel_id FROM message WHERE channel_id NOT IN (SELECT id FROM channel)
        """)
    for id in lost {
      try db.execute(
        sql: "INSERT INTO channel (id, name, message_count) VALUES (?, ?, -1)",
        arguments: [id, try freeName(for: id, in: "channel")])
    }
  }

  /// Deletes rows that refer to a lost channel, consumer or message, and deliveries of dead letters.
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

  /// Advances each position to the newest delivery or dead letter of its consumer and priority, and
  /// delivers the messages between.
  ///
  /// If deliveries are lost, it also delivers each message before a position that has neither,
  /// unless its channel keeps acknowledged messages: there it can be an acknowledged one.
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
    // The next receive checks again which of them must wait for their ordering key.
    try db.execute(
      sql: "UPDATE delivery SET is_blocked = 0 WHERE \(MessageVerifier.isBlockedByNone)")
  }

  /// Adds a delivery for each message of the range that has none and is not a dead letter.
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

  /// Creates a missing row of the engine or the identity, and raises the engine's numbers to the
  /// greatest ones of the other rows.
  private mutating func repairEngineRow() throws {
    if try Int.fetchOne(db, sql: "SELECT count(*) FROM engine") == 0 {
      result.rebuiltEngineRow = true
      try db.execute(
        sql: """
          INSERT INTO engine VALUES (1, 1, 9999999999999999,
            ifnull((SELECT max(held_boot) FROM delivery), 0) + 1, '', x'', NULL)
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

  /// Counts each channel's messages and bytes, and reports the messages that its own count misses.
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
