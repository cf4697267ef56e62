internal import GRDB
internal import VaultCrypto

/// Writes one snapshot of the messages as lines: `docs/reference/message-export.md`.
struct MessageExporter {
  /// Lines are written together in chunks of this size.
  private static let chunkByteCount = 1 << 18

  private let db: Database
  private let selection: MessageSelection
  private let write: ([UInt8]) throws -> Void
  private let progress: (WorkProgress) -> Void
  private let total: Int
  private let channels: [Int64: ChannelExport]

  private var place: ExportPlace
  private var chunk: [UInt8] = []

  /// - Parameters:
  ///   - place: where to continue; its digest covers what was written before.
  ///   - write: takes whole lines, in order.
  init(
    _ db: Database, _ selection: MessageSelection, from place: consuming ExportPlace,
    progress: @escaping (WorkProgress) -> Void, write: @escaping ([UInt8]) throws -> Void
  ) throws {
    self.db = db
    self.selection = selection
    self.place = place
    self.write = write
    self.progress = progress
    channels = try ChannelExport.all(selection.channels, db)
    total = channels.values.reduce(0) { sum, channel in
      let (total, overflows) = sum.addingReportingOverflow(max(channel.messageCount, 0))
      return overflows ? .max : total
    }
  }

  /// Writes from the place to the end.
  mutating func run() throws -> ExportReport {
    var report = ExportReport()
    let state = try ExportState(db)
    if let header = place.header {
      report.resumedAfter = place.messageCount
      report.databaseChanged = !place.isUnchanged(in: state)
      guard header.source == state.source else { throw EngineError.exportOfAnotherDatabase }
      try emit(.resumed(state.moment))
    } else {
      try emit(
        .export(
          ExportHeader(
            id: RandomSource.system.bytes(count: 16).hexadecimal, source: state.source,
            after: selection.after?.rawValue,
            channels: selection.channels?.map(\.name).sorted {
              $0.utf8.lexicographicallyPrecedes($1.utf8)
            },
            moment: state.moment)))
    }
    for id in channels.keys.sorted() {
      guard let channel = channels[id] else { continue }
      try emit(.channel(channel.exported))
      for consumer in channel.consumers { try emit(.consumer(consumer.exported)) }
    }
    try writeMessages()
    try writeDeduplications(through: state.moment.highWater)
    try flush()
    let digest = try place.digest.finalized().hexadecimal
    let end = ExportEnd(
      messageCount: place.messageCount, lineCount: place.lineCount, sha256: digest)
    try write(ExchangeRecord.end(end).line)
    report.messageCount = place.messageCount
    return report
  }

  private mutating func writeMessages() throws {
    let rows = try selection.messages(
      [
        "timetoken", "channel_id", "priority", "due", "expires", "ordering_key", "headers",
        "payload",
      ], after: place.lastTimetoken, in: db)
    while let row = try rows.next() {
      guard let channel = channels[row[1]] else {
        throw EngineError(
          .damaged, "message \(row[0] as Int64) belongs to a channel that does not exist",
          hint: "run datavault queue verify")
      }
      var message = ExportedMessage(
        timetoken: row[0], channel: channel.exported.channel, priority: Priority(stored: row[2]),
        due: row[3], expires: row[4], orderingKey: row[5],
        headers: try HeaderCoding.decode(row[6]), payload: try row.bytes(at: 7))
      for consumer in channel.consumers { try consumer.addState(to: &message, db) }
      try emit(.message(message))
      place.messageCount += 1
    }
  }

  private mutating func writeDeduplications(through highWater: Int64) throws {
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT channel_id, id, timetoken, until FROM deduplication
        WHERE timetoken > ? AND timetoken <= ? ORDER BY channel_id, id
        """, arguments: [selection.after?.rawValue ?? 0, highWater])
    while let row = try rows.next() {
      guard let channel = channels[row[0]] else { continue }
      try emit(
        .deduplication(
          ExportedDeduplication(
            channel: channel.exported.channel, id: row[1], timetoken: row[2], until: row[3])))
    }
  }

  private mutating func emit(_ record: ExchangeRecord) throws {
    chunk += record.line
    place.lineCount += 1
    if chunk.count >= Self.chunkByteCount { try flush() }
  }

  private mutating func flush() throws {
    try place.digest.update(chunk)
    try write(chunk)
    chunk.removeAll(keepingCapacity: true)
    progress(WorkProgress(completed: min(place.messageCount, total), total: total))
  }
}

/// The position in an export: what the lines that are already in its file contain.
struct ExportPlace {
  /// Nil before the first line.
  var header: ExportHeader?
  /// The state of the database in the header, or in the last line that resumed the export.
  var moment = ExportMoment()
  /// Whether the lines have messages that have left the database.
  var hasRemovedMessages = false
  var lastTimetoken: Int64 = 0
  var messageCount = 0
  var lineCount = 0
  var digest = RunningDigest()

  /// Whether the lines show the database as it is.
  func isUnchanged(in state: ExportState) -> Bool {
    moment == state.moment && !hasRemovedMessages
  }
}

/// The state and the id of the database, as an export names them.
struct ExportState {
  let moment: ExportMoment
  let source: String

  init(_ db: Database) throws {
    let row = try Row.fetchOne(
      db, sql: "SELECT commit_number, timetoken_high_water, source FROM engine, identity")
    guard let row else { throw EngineError.engineRowMissing }
    moment = ExportMoment(commitNumber: row[0], highWater: row[1])
    source = row[2]
  }
}

extension MessageSelection {
  /// The rows of the chosen messages, by rising timetoken.
  ///
  /// - Parameter timetoken: where to continue.
  /// - Throws: `channelMissing`.
  func messages(
    _ columns: [String], after timetoken: Int64 = 0, in db: Database
  ) throws -> RowCursor {
    var channelFilter = ""
    if let channels {
      let ids = try ChannelExport.all(channels, db).keys.sorted()
      // For several channels, `+` keeps SQLite from their index: it would have to sort all their
      // messages. So it reads the whole log in order, and filters.
      let list = ids.map(String.init).joined(separator: ", ")
      channelFilter =
        ids.count == 1 ? "AND channel_id = \(list)" : "AND +channel_id IN (\(list))"
    }
    return try Row.fetchCursor(
      db,
      sql: """
        SELECT \(columns.joined(separator: ", ")) FROM message
        WHERE timetoken > ? \(channelFilter) ORDER BY timetoken
        """, arguments: [max(timetoken, after?.rawValue ?? 0)])
  }
}

extension EngineError {
  static let exportOfAnotherDatabase = EngineError(
    .alreadyExists, "the unfinished export belongs to another database",
    hint: "remove it, or use another file name")
}
