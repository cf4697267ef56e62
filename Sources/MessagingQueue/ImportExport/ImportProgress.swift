internal import Foundation
internal import GRDB

/// The progress of one file's import: a row of `import`.
struct ImportProgress: Sendable, Hashable {
  /// Lines that are stored.
  var lineCount: Int64 = 0
  /// Their chained digest.
  var digest = LineChain().digest
  /// Messages that kept their timetokens; messages that got new ones are in `renumberedCount`.
  var keptCount: Int64 = 0
  var renumberedCount: Int64 = 0
  var isComplete = false

  init() {}

  /// Finds the row of a file, or makes it.
  ///
  /// - Throws: `alreadyExists` for a file that must not be imported.
  static func begin(_ file: CheckedImport, _ db: Database) throws -> ImportProgress {
    let header = file.header
    let source = try String.fetchOne(db, sql: "SELECT source FROM identity")
    guard source != header.source else {
      throw EngineError(
        .alreadyExists, "the file is an export of this database",
        hint: "this database already had its messages; import the file into another home")
    }
    if let progress = try find(header.id, db) {
      if progress.isComplete, progress.digest != file.digest {
        throw EngineError(
          .alreadyExists, "another file of this export has been imported",
          hint: "export again with --after, from where that file ended")
      }
      return progress
    }
    try requireNew(file, db)
    try db.execute(
      sql: "INSERT INTO import VALUES (?, ?, ?, ?, ?, 0, ?, 0, 0, 0)",
      arguments: [
        header.id, header.source, header.channels.map { $0.joined(separator: "\n") },
        header.after ?? 0, file.lastTimetoken, Data(LineChain().digest),
      ])
    return ImportProgress()
  }

  /// - Parameter before: the row when the lines were read.
  /// - Throws: `busy` if another import has stored lines of the same file since.
  func store(_ id: String, replacing before: ImportProgress, _ db: Database) throws {
    guard try Self.find(id, db) == before else {
      throw EngineError(
        .busy, "another process imports the same file", hint: "try again when it has finished")
    }
    try db.cachedStatement(
      sql: """
        UPDATE import SET line_count = ?, digest = ?, kept_count = ?, renumbered_count = ?,
          is_complete = ? WHERE id = ?
        """
    ).execute(arguments: [lineCount, Data(digest), keptCount, renumberedCount, isComplete, id])
  }

  private static func find(_ id: String, _ db: Database) throws -> ImportProgress? {
    let select = try db.cachedStatement(
      sql: """
        SELECT line_count, digest, kept_count, renumbered_count, is_complete FROM import WHERE id = ?
        """)
    guard let row = try Row.fetchOne(select, arguments: [id]) else { return nil }
    var progress = ImportProgress()
    (progress.lineCount, progress.digest) = (row[0], try row.bytes(at: 1))
    (progress.keptCount, progress.renumberedCount, progress.isComplete) = (row[2], row[3], row[4])
    return progress
  }

  /// Throws for messages that an earlier export of the same database has brought.
  private static func requireNew(_ file: CheckedImport, _ db: Database) throws {
    // Removes imports that have stored no line.
    try db.execute(
      sql: "DELETE FROM import WHERE source = ? AND line_count = 0",
      arguments: [file.header.source])
    let rows = try Row.fetchAll(
      db, sql: "SELECT channels, after, last, is_complete FROM import WHERE source = ?",
      arguments: [file.header.source])
    for row in rows {
      let channels = (row[0] as String?).map {
        Set($0.split(separator: "\n").map { Array($0.utf8) })
      }
      let chosen = file.header.channels.map { Set($0.map { Array($0.utf8) }) }
      let (after, last): (Int64, Int64) = (row[1], row[2])
      let isOtherPart = file.lastTimetoken <= after || file.header.after ?? 0 >= last
      let areOtherChannels = channels.flatMap { chosen?.isDisjoint(with: $0) } ?? false
      if isOtherPart || areOtherChannels { continue }
      guard row[3] else {
        throw EngineError(
          .alreadyExists, "an earlier export of the same database is only partly imported",
          hint: "import that file again first: the import continues where it stopped")
      }
      throw EngineError(
        .alreadyExists, "messages of this file came with an earlier export of the same database",
        hint: "export the rest with --after \(last)")
    }
  }
}

/// Moves consumers forward past messages that are imported.
///
/// An existing consumer still gets messages that it has not passed on the way: each gets the row in
/// `delivery` that a receive would have added.
struct PositionTable {
  private struct Key: Hashable {
    let consumerID: Int64
    let priority: Int
  }

  private let db: Database
  private let now: Int64
  private var positions: [Key: Int64] = [:]
  private var changed: Set<Key> = []

  init(_ db: Database, now: Int64) {
    self.db = db
    self.now = now
  }

  mutating func advance(
    _ consumerID: Int64, channelID: Int64, _ priority: Priority, to timetoken: Timetoken
  ) throws {
    let key = Key(consumerID: consumerID, priority: priority.rawValue)
    let position = try positions[key] ?? stored(key)
    if position >= timetoken.rawValue { return }
    try db.cachedStatement(
      sql: """
        INSERT INTO delivery (consumer_id, timetoken, priority, ordering_key, attempt_count, due,
          is_blocked)
        SELECT ?1, timetoken, priority, ordering_key, 0, iif(due > ?2, due, NULL), 0 FROM message
        WHERE channel_id = ?3 AND timetoken > ?4 AND timetoken < ?5
          AND priority = ?6 \(priority == .normal ? "" : "AND priority <> 4")
        """
    ).execute(arguments: [
      consumerID, now, channelID, position, timetoken.rawValue, priority.rawValue,
    ])
    positions[key] = timetoken.rawValue
    changed.insert(key)
  }

  mutating func store() throws {
    let replace = try db.cachedStatement(sql: "INSERT OR REPLACE INTO position VALUES (?, ?, ?)")
    for key in changed {
      try replace.execute(arguments: [key.consumerID, key.priority, positions[key]])
    }
    changed = []
  }

  private func stored(_ key: Key) throws -> Int64 {
    let select = try db.cachedStatement(
      sql: "SELECT timetoken FROM position WHERE consumer_id = ? AND priority = ?")
    return try Int64.fetchOne(select, arguments: [key.consumerID, key.priority]) ?? 0
  }
}
