internal import GRDB
internal import VaultCrypto

/// Writes one snapshot of the messages as lines: `docs/reference/message-export.md`.
struct MessageExporter {
  /// Lines are written together in chunks of this size.
  private static let chunkByteCount = 1 << 18

  private let db: Database
  private let selection: MessageSelection
  private let write: ([UInt8]) throws -> Void
  private let progress: (ExchangeProgress) -> Void
  private let total: Int
  private let channels: [Int64: ExportedChannelRows]

  private var place: ExportPlace
  private var chunk: [UInt8] = []

  /// - Parameters:
  ///   - place: where to continue; its digest covers what was written before.
  ///   - write: takes whole lines, in order.
  init(
    _ db: Database, _ selection: MessageSelection, from place: consuming ExportPlace,
    progress: @escaping (ExchangeProgress) -> Void, write: @escaping ([UInt8]) throws -> Void
  ) throws {
    self.db = db
    self.selection = selection
    self.place = place
    self.write = write
    self.progress = progress
    channels = try ExportedChannelRows.all(selection.channels, db)
    total = channels.values.reduce(0) { sum, rows in
      let (total, overflows) = sum.addingReportingOverflow(max(rows.messageCount, 0))
      return overflows ? .max : total
    }
  }

  /// Writes from the place to the end.
  mutating func run() throws -> ExportReport {
    var report = ExportReport()
    let state = try ExportState.read(db)
    if let header = place.header {
      report.resumedAfter = Int(place.messageCount)
      report.databaseChanged = place.commitNumber != state.moment.commitNumber
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
      guard let rows = channels[id] else { continue }
      try emit(.channel(rows.channel))
      for consumer in rows.consumers { try emit(.consumer(consumer.exported)) }
    }
    try writeMessages()
    try writeDeduplications(through: state.moment.highWater)
    try flush()
    let digest = try place.digest.finalized().hexadecimal
    let end = ExportEnd(
      messageCount: place.messageCount, lineCount: place.lineCount, sha256: digest)
    try write(ExchangeRecord.end(end).line)
    report.messageCount = Int(place.messageCount)
    return report
  }

  private mutating func writeMessages() throws {
    var channelFilter = ""
    if let ids = selection.channels.map({ _ in channels.keys.sorted() }) {
      // For several channels, `+` keeps SQLite from their index: it would have to sort all their
      // messages. So it reads the whole log in order, and filters.
      let list = ids.map(String.init).joined(separator: ", ")
      channelFilter =
        ids.count == 1 ? "AND channel_id = \(list)" : "AND +channel_id IN (\(list))"
    }
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT timetoken, channel_id, priority, due, expires, ordering_key, headers, payload
        FROM message WHERE timetoken > ? \(channelFilter) ORDER BY timetoken
        """, arguments: [max(place.lastTimetoken, selection.after?.rawValue ?? 0)])
    while let row = try rows.next() {
      guard let channel = channels[row[1]] else { throw EngineError.orphanedMessage(row[0]) }
      var message = ExportedMessage(
        timetoken: row[0], channel: channel.channel.channel, priority: Priority(stored: row[2]),
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
            channel: channel.channel.channel, id: row[1], timetoken: row[2], until: row[3])))
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
    progress(ExchangeProgress(completed: min(Int(place.messageCount), total), total: total))
  }
}

/// The position in an export: what the lines that are already in its file contain.
struct ExportPlace {
  /// Nil before the first line.
  var header: ExportHeader?
  /// The database's commit number in the header, or in the last line that resumed the export.
  var commitNumber: Int64 = 0
  var lastTimetoken: Int64 = 0
  var messageCount: Int64 = 0
  var lineCount: Int64 = 0
  var digest = RunningDigest()
}

/// The state and the id of the database, as an export names them.
struct ExportState {
  let moment: ExportMoment
  let source: String

  static func read(_ db: Database) throws -> ExportState {
    let row = try Row.fetchOne(
      db, sql: "SELECT commit_number, timetoken_high_water, source FROM engine, identity")
    guard let row else { throw EngineError.engineRowMissing }
    return ExportState(
      moment: ExportMoment(commitNumber: row[0], highWater: row[1]), source: row[2])
  }
}

extension EngineError {
  static let exportOfAnotherDatabase = EngineError(
    .alreadyExists, "the unfinished export belongs to another database",
    hint: "remove it, or use another file name")

  fileprivate static func orphanedMessage(_ timetoken: Int64) -> EngineError {
    EngineError(
      .damaged, "message \(timetoken) belongs to a channel that does not exist",
      hint: "run datavault queue verify")
  }
}

/// A SHA-256 that is updated in place.
///
/// It is a class because `SHA256` is noncopyable and ``ExportPlace`` is not. Copies of a place share
/// one digest, so only one of them can continue.
final class RunningDigest {
  private var hash: SHA256?

  init() {}

  func update(_ bytes: [UInt8]) throws(EngineError) {
    do throws(CryptoError) {
      var hash = try take()
      try unsafe hash.update(bytes.span.bytes)
      self.hash = consume hash
    } catch {
      throw EngineError(.inputOutput, "the digest cannot be computed", underlying: error)
    }
  }

  /// The digest of all bytes so far; the next update begins a new digest.
  func finalized() throws(EngineError) -> [UInt8] {
    do throws(CryptoError) {
      return try take().finalize()
    } catch {
      throw EngineError(.inputOutput, "the digest cannot be computed", underlying: error)
    }
  }

  private func take() throws(CryptoError) -> SHA256 {
    if let hash = hash.take() { return hash }
    return try SHA256()
  }
}

extension [UInt8] {
  /// Two lowercase digits for each byte.
  var hexadecimal: String {
    let digits = Array<UInt8>("0123456789abcdef".utf8)
    return String(
      decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
  }
}
