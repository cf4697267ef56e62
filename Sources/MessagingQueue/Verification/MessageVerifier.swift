internal import Foundation
package import GRDB

/// Checks every row of the engine's tables in one snapshot; changes nothing.
package struct MessageVerifier {
  private let db: Database
  private var result = MessageVerification()
  private var highWater: Int64 = 0
  private var bootNumber: Int64 = 0
  private let progress: (WorkProgress) -> Void

  private init(_ db: Database, _ progress: @escaping (WorkProgress) -> Void) {
    self.db = db
    self.progress = progress
  }

  /// Verifies what a connection sees; memory grows only with the number of channels.
  package static func run(
    _ db: Database, progress: @escaping (WorkProgress) -> Void = { _ in }
  ) throws -> MessageVerification {
    var verifier = MessageVerifier(db, progress)
    guard try verifier.checkSchema() else { return verifier.result }
    try verifier.checkEngineRow()
    try verifier.checkMessages()
    try verifier.checkRows()
    try verifier.checkTexts()
    return verifier.result
  }

  /// - Returns: whether the tables have the expected schema, so that their rows can be checked.
  private mutating func checkSchema() throws -> Bool {
    let applicationID = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
    let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    // No engine has started on it yet.
    if try applicationID == 0 && version == 0 && !db.tableExists("engine") { return false }
    if applicationID != EngineSchema.applicationID {
      result.note("applicationID", "it is \(applicationID)")
    }
    result.schemaVersion = version
    let newest = EngineSchema.migrations.count
    guard (1...newest).contains(version) else {
      result.note(
        "schemaVersion",
        version > newest
          ? "it is \(version), a newer version; this software knows \(newest)"
          : "it is \(version), which no version has")
      return false
    }
    let found = try EngineSchema.entries(of: db)
    var isWhole = true
    for (name, sql) in try EngineSchema.expectedEntries(ofVersion: version)
    where found[name] != sql {
      result.note("schema", found[name] == nil ? "\(name) is missing" : "\(name) differs")
      isWhole = false
    }
    for trigger in try EngineSchema.foreignTriggers(of: db) {
      result.note("schema", "the trigger \(trigger) on a table of the engine is not the engine's")
    }
    return isWhole
  }

  private mutating func checkEngineRow() throws {
    let row = try Row.fetchOne(
      db,
      sql: "SELECT timetoken_high_water, boot_number, commit_number, length(anchors) FROM engine")
    guard let row else { return result.note("engineRow", "it is missing") }
    (highWater, bootNumber) = (row[0], row[1])
    let (commitNumber, anchorByteCount): (Int64, Int) = (row[2], row[3])
    let timetokens = Timetoken.smallest.rawValue - 1...Timetoken.greatest.rawValue
    for (what, number, range) in [
      ("greatest timetoken", highWater, timetokens),
      ("commit number", commitNumber, EngineSchema.counts),
      ("boot number", bootNumber, EngineSchema.counts),
    ] where !range.contains(number) {
      result.note("engineRow", "the \(what) is \(number)")
    }
    if result.schemaVersion >= EngineSchema.firstVersionWithLimit,
      let limit = try Int64.fetchOne(db, sql: "SELECT most_bytes FROM engine"), limit < 1
    {
      result.note("engineRow", "the limit of the database's size is \(limit)")
    }
    if !anchorByteCount.isMultiple(of: EngineAnchorStorage.entryByteCount) {
      result.note("engineRow", "the anchors are torn")
    }
    if try Int.fetchOne(db, sql: "SELECT count(*) FROM identity") != 1 {
      result.note("engineRow", "the database has no name for its exports")
    }
  }

  /// Checks each message, and the sums of its channel.
  private mutating func checkMessages() throws {
    var sums: [Int64: (count: Int64, byteCount: Int64)] = [:]
    // Not sum(), which fails where the sum is too great.
    let total =
      try Int.fetchOne(
        db, sql: "SELECT CAST(total(max(message_count, 0)) AS INTEGER) FROM channel") ?? 0
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT timetoken, channel_id, priority, ordering_key, headers, length(payload) FROM message
        """)
    while let row = try rows.next() {
      let (timetoken, channelID, priority): (Int64, Int64, Int) = (row[0], row[1], row[2])
      if timetoken < Timetoken.smallest.rawValue || timetoken > highWater {
        result.note("timetoken", "message \(timetoken)")
      }
      if !(0...9).contains(priority) { result.note("priority", "message \(timetoken)") }
      if row[3] != nil, priority != Priority.normal.rawValue {
        result.note("orderingKeyWithPriority", "message \(timetoken)")
      }
      let headers: Data? = row[4]
      if (try? HeaderCoding.decode(headers)) == nil {
        result.note("headers", "message \(timetoken)")
      }
      let sum = sums[channelID] ?? (0, 0)
      sums[channelID] = (sum.count + 1, sum.byteCount + row[5] + Int64(headers?.count ?? 0))
      result.messageCount += 1
      if result.messageCount.isMultiple(of: 4096) {
        progress(WorkProgress(completed: min(result.messageCount, total), total: total))
      }
    }
    // Version 1 counts only the messages that are there.
    let published = result.schemaVersion > 1 ? "published_count" : "message_count"
    let channels = try Row.fetchCursor(
      db, sql: "SELECT id, name, message_count, byte_count, \(published) FROM channel")
    while let row = try channels.next() {
      let found = sums.removeValue(forKey: row[0]) ?? (0, 0)
      let (count, byteCount): (Int64, Int64) = (row[2], row[3])
      if found.count != count || found.byteCount != byteCount {
        result.note(
          "channelSums",
          "channel \(row[1] as String) counts \(count) messages and \(byteCount) bytes, it has "
            + "\(found.count) and \(found.byteCount)")
      } else if row[4] < found.count || row[4] > EngineSchema.counts.upperBound {
        result.note(
          "channelSums",
          "channel \(row[1] as String) has \(found.count) messages, of \(row[4] as Int64) published"
        )
      }
    }
    for (id, sum) in sums.sorted(by: { $0.key < $1.key }) {
      result.note(
        "messageChannel", "\(sum.count) messages of channel number \(id), which does not exist")
    }
  }

  /// The location of a row, as an expression of SQL that gives text for people.
  private static func location(in table: String) -> String {
    switch table {
    case "delivery", "dead_letter": "'consumer ' || consumer_id || ', message ' || timetoken"
    case "position": "'consumer ' || consumer_id"
    case "deduplication": "'message ' || timetoken"
    case "channel": "'channel ' || name"
    default: "'\(table) ' || id"
    }
  }

  /// Each rule with a table and the condition of the rows that break it.
  private var rowRules: [(rule: String, table: String, condition: String)] {
    func delivered(_ table: String) -> [(String, String, String)] {
      [
        ("\(table)Consumer", table, "consumer_id NOT IN (SELECT id FROM consumer)"),
        (
          "\(table)Message", table,
          """
          consumer_id IN (SELECT id FROM consumer) AND NOT EXISTS (SELECT 1 FROM message
            WHERE message.timetoken = \(table).timetoken AND channel_id =
              (SELECT channel_id FROM consumer WHERE id = consumer_id))
          """
        ),
        (
          "\(table)Attempts", table,
          "attempt_count NOT BETWEEN 0 AND \(ReadyDelivery.maximumAttemptCount)"
        ),
      ]
    }
    return delivered("delivery") + delivered("dead_letter") + [
      (
        "deliveryOfMessage", "delivery",
        """
        EXISTS (SELECT 1 FROM message WHERE message.timetoken = delivery.timetoken
          AND (message.priority <> delivery.priority
            OR message.ordering_key IS NOT delivery.ordering_key))
        """
      ),
      (
        "deliveryBeyondPosition", "delivery",
        """
        timetoken > ifnull((SELECT timetoken FROM position
          WHERE position.consumer_id = delivery.consumer_id
            AND position.priority = delivery.priority), 0)
        """
      ),
      (
        "deliveryLease", "delivery",
        "length(lease) <> 16 OR (lease IS NOT NULL AND attempt_count = 0)"
      ),
      (
        "deliveryBoot", "delivery",
        "held_boot NOT BETWEEN 0 AND \(bootNumber) OR held_until < 0"
      ),
      ("deliveryBlocked", "delivery", Self.isBlockedByNone),
      (
        "deadLetterInHand", "dead_letter",
        """
        EXISTS (SELECT 1 FROM delivery WHERE delivery.consumer_id = dead_letter.consumer_id
          AND delivery.timetoken = dead_letter.timetoken)
        """
      ),
      ("positionConsumer", "position", "consumer_id NOT IN (SELECT id FROM consumer)"),
      ("position", "position", "priority NOT BETWEEN 0 AND 9 OR timetoken > \(highWater)"),
      (
        "consumerChannel", "consumer",
        "channel_id NOT IN (SELECT id FROM channel) OR most_attempts < 1"
      ),
      (
        "deduplication", "deduplication",
        "channel_id NOT IN (SELECT id FROM channel) OR timetoken > \(highWater)"
      ),
      (
        "channelSettings", "channel",
        """
        longest_age < 0 OR most_messages < 0 OR most_bytes < 0
          OR keeps_acknowledged NOT IN (0, 1) OR discards_unacknowledged NOT IN (0, 1)
          OR removed_through < 0 OR (removed_through > \(highWater)
            AND NOT EXISTS (SELECT 1 FROM import WHERE is_complete = 0))
        """
      ),
      ("import", "import", "line_count < 0 OR length(digest) <> 32"),
    ]
  }

  private mutating func checkRows() throws {
    for (rule, table, condition) in rowRules {
      let locations = try String.fetchCursor(
        db, sql: "SELECT \(Self.location(in: table)) FROM \(table) WHERE \(condition)")
      while let location = try locations.next() { result.note(rule, location) }
    }
  }

  /// Checks that names follow the rules for names, and that histories of failures can be read.
  private mutating func checkTexts() throws {
    let names = try Row.fetchCursor(
      db,
      sql: """
        SELECT 'channel', id, name FROM channel UNION ALL SELECT 'consumer', id, name FROM consumer
        UNION ALL SELECT 'message', timetoken, ordering_key FROM message WHERE ordering_key IS NOT NULL
        UNION ALL SELECT 'deduplication id of', timetoken, id FROM deduplication
        """)
    while let row = try names.next() {
      if Name.fault(in: row[2]) != nil {
        result.note("name", "\(row[0] as String) \(row[1] as Int64)")
      }
    }
    let failures = try Row.fetchCursor(
      db,
      sql: """
        SELECT consumer_id, timetoken, failures FROM delivery WHERE failures IS NOT NULL
        UNION ALL SELECT consumer_id, timetoken, failures FROM dead_letter WHERE failures IS NOT NULL
        """)
    while let row = try failures.next() {
      if DeliveryFailure.list(row[2]).isEmpty {
        result.note("failures", "consumer \(row[0] as Int64), message \(row[1] as Int64)")
      }
    }
  }

  /// A delivery that waits for its ordering key although no other one is before it, as a condition of
  /// SQL.
  static let isBlockedByNone = """
    is_blocked <> 0 AND NOT EXISTS (SELECT 1 FROM delivery AS other
      WHERE other.consumer_id = delivery.consumer_id
        AND other.ordering_key = delivery.ordering_key AND other.is_blocked = 0)
    """
}
