internal import Foundation
internal import GRDB

/// The progress of one file's import: a row of `import`.
struct ImportProgress: Sendable, Hashable {
  /// Lines that are stored.
  var lineCount = 0
  /// Their chained digest.
  var digest = LineChain().digest
  /// Messages that kept their timetokens; messages that got new ones are in `renumberedCount`.
  var keptCount = 0
  var renumberedCount = 0
  var isComplete = false

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
    return ImportProgress(
      lineCount: row[0], digest: try row.bytes(at: 1), keptCount: row[2], renumberedCount: row[3],
      isComplete: row[4])
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
        hint: hint(
          beginsEarlier: file.header.after ?? 0 < after,
          hasMoreChannels: channels.map { chosen?.isSubset(of: $0) != true } ?? false, last))
    }
  }

  /// What brings the messages that an earlier export lacks, and only those.
  private static func hint(beginsEarlier: Bool, hasMoreChannels: Bool, _ last: Int64) -> String {
    if beginsEarlier {
      return "this file begins before that export: import it into a new home, which then has it all"
    }
    guard hasMoreChannels else { return "export the rest with --after \(last)" }
    return "export the channels that were not in that export with --channel, and the rest of its "
      + "channels with --channel and --after \(last)"
  }
}
