internal import FileLayer
internal import GRDB

/// A part of the log in the order of timetokens, for a server that distributes it to its subscribers.
package struct LogTail: Sendable {
  /// Messages, leased, delayed and expired ones included.
  package let messages: [LogMessage]
  /// The place up to which the log was read: no message before it is committed later.
  package let end: Timetoken
  /// Whether the log ended there when it was read.
  package let isAtEnd: Bool
  /// What the home had undone when it was read; empty on a home that is the only one.
  package let undone: [UndoneRange]
  /// What other nodes had undone, as far as this home knew when it was read.
  package let repaired: [PlaceRange]

  package init(
    messages: [LogMessage], end: Timetoken, isAtEnd: Bool, undone: [UndoneRange] = [],
    repaired: [PlaceRange] = []
  ) {
    self.messages = messages
    self.end = end
    self.isAtEnd = isAtEnd
    self.undone = undone
    self.repaired = repaired
  }
}

/// The channels of a read: some by name, others by the beginning of their names.
package struct ChannelSelection: Sendable, Hashable {
  package var channels: Set<Channel>
  /// Each ends with a dot.
  package var prefixes: Set<String>

  package init(channels: Set<Channel>, prefixes: Set<String> = []) {
    self.channels = channels
    self.prefixes = prefixes
  }
}

extension MessagingEngine {
  /// Reads the log after a place, in one snapshot and without blocking publishers.
  ///
  /// A message that left the log before the read is missing: channels that are distributed must keep acknowledged
  /// messages.
  ///
  /// - Parameters:
  ///   - selection: default: nil, all channels, also those that do not exist yet.
  ///   - maximumCount: default: 1000.
  ///   - maximumByteCount: the most bytes of payloads and headers; the first message is always read. Default: 4 MiB.
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package func logTail(
    after place: Timetoken, in selection: ChannelSelection? = nil, maximumCount: Int = 1000,
    maximumByteCount: Int = 4 << 20
  ) async throws(EngineError) -> LogTail {
    let query = LogQuery(
      channels: selection?.channels ?? [], cursor: place.rawValue, maximumCount: maximumCount,
      maximumByteCount: maximumByteCount)
    return try await access.read(during: "reading the log") { [self] db in
      // The first read takes the snapshot.
      let highWater = try EngineDatabase.highWater(db)
      let (page, isAtEnd) =
        try selection.map { try EngineDatabase.tail(query, in: $0, db) }
        ?? EngineDatabase.tail(query, db)
      let last = page.messages.last?.timetoken.rawValue ?? 0
      return LogTail(
        messages: page.messages,
        end: Timetoken(unchecked: isAtEnd ? max(highWater, place.rawValue) : last),
        isAtEnd: isAtEnd, undone: try undone(in: db), repaired: try repaired(in: db))
    }
  }

  /// The end of the log: the greatest timetoken that was assigned to a committed message.
  ///
  /// Unlike the clock, it is a place that a reader can continue from: all messages that are committed later come after
  /// it.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package func logEnd() async throws(EngineError) -> Timetoken {
    try await access.read(during: "reading the log") { db in
      Timetoken(unchecked: try EngineDatabase.highWater(db))
    }
  }
}

extension MessagingEngine {
  /// Reserves places of the log for events that are not stored: no message ever gets one of them.
  ///
  /// On return the reservation is on the disk, so that it holds after a crash.
  ///
  /// - Parameter count: at least 1; 10,000,000 are one second.
  /// - Returns: the places, from a multiple of 100 on. The first is the time of the call, or comes after all
  ///   timetokens that were given out, whichever is greater.
  /// - Throws: `invalidArgument`, `busy`, `diskFull`, `stopped`, `vaultLocked`, `damaged`, `inputOutput`,
  ///   `outcomeUnknown`, `cancelled`.
  package func reservePlaces(count: Int64) async throws(EngineError) -> ClosedRange<Int64> {
    try requireRunning()
    let operation = QueueOperation.reservePlaces(count: count)
    // Not through perform(_:): an event that is not stored takes nothing from the reserve of the disk.
    let first =
      if let replica = try replica() {
        try await replica.perform(operation).count
      } else {
        try await commits.run(during: operation.name) { [tables] db in
          try operation.run(tables, db).count
        }
      }
    return first...first + count - 1
  }

  /// The wall clock's time in the unit of timetokens.
  package var clockTicks: Int64 { WallTime.ticks(of: tables.time.now) }
}

extension EngineDatabase {
  package static let selectTail = """
    SELECT timetoken, priority, ordering_key, headers, payload, due, expires, name
    FROM message JOIN channel ON channel.id = channel_id
    WHERE timetoken > ? ORDER BY timetoken
    """

  package static let selectChannelsBetween = "SELECT name FROM channel WHERE name >= ? AND name < ?"

  /// The log of all channels after the query's cursor.
  fileprivate static func tail(
    _ query: LogQuery, _ db: Database
  ) throws -> (page: LogPage, isAtEnd: Bool) {
    var page = LogPage(query)
    let rows = try Row.fetchCursor(
      db.cachedStatement(sql: selectTail), arguments: [query.cursor])
    while let row = try rows.next() {
      guard page.append(try message(row, of: Channel(stored: row[7]))) else { return (page, false) }
    }
    return (page, true)
  }

  /// The log of some channels after the query's cursor.
  fileprivate static func tail(
    _ query: LogQuery, in selection: ChannelSelection, _ db: Database
  ) throws -> (page: LogPage, isAtEnd: Bool) {
    var query = query
    for prefix in selection.prefixes {
      // A slash comes after a dot, and nothing is between the two.
      let names = try String.fetchAll(
        db.cachedStatement(sql: selectChannelsBetween),
        arguments: [prefix, String(prefix.dropLast()) + "/"])
      query.channels.formUnion(names.map(Channel.init(stored:)))
    }
    let page = try page(query, db)
    return (page, try endsLog(page, of: query, db))
  }
}
