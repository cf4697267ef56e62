internal import GRDB

/// The messages of one or several channels, from a place in the log on, for as long as the engine
/// runs: first those that are there, then each as it is committed.
///
/// None is missing between the two and none comes twice: both are reads of the log by a cursor, and
/// only a reader that has come to its end waits. Messages come in the order of their timetokens.
/// Each iterator starts where the sequence does. Nothing but the page that was read last is in
/// memory; ``OverflowPolicy`` says what a slow reader can do about its lag.
///
/// A message that every consumer has acknowledged leaves the log, unless its channel keeps it
/// (``Retention/keepsAcknowledged``). A reader that comes too late for some is told, and of how many.
///
/// Cancelling the task ends the sequence. Stopping the engine ends it with `stopped`.
public struct LogMessages: AsyncSequence, Sendable {
  /// What it yields.
  public typealias Element = LogMessage
  /// What it throws.
  public typealias Failure = EngineError

  let reader: LogReader
  let channels: Set<Channel>
  let start: LogStart
  let overflow: OverflowPolicy
  let pageByteCount: Int

  /// The most messages that one read takes into memory.
  static let pageCount = 256

  /// Starts at the place the sequence was made for.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// Reads page by page.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: LogMessages
    private var cursor: Int64?
    private var page: ArraySlice<LogMessage> = []
    private var isOver = false
    /// What had been removed before the reader began: it was not to see that.
    private var removedBefore: [Channel: Int64]?
    private var account: ReadingAccount?
    /// Messages that were gone when the last page was read, which ended the log.
    private var missedCount = 0

    init(_ sequence: LogMessages) {
      self.sequence = sequence
      cursor = sequence.start.cursor
      account = sequence.start.account
      if !sequence.start.forgivesRemovals { removedBefore = [:] }
    }

    /// The next message, as soon as there is one; nil once the task is cancelled.
    ///
    /// - Throws: `stopped`, `vaultLocked`; `messagesRemoved` if messages were removed from the log
    ///   that this reader has not seen; `damaged`, `inputOutput`. The sequence is over then.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(EngineError) -> LogMessage? {
      if isOver || Task.isCancelled { return end() }
      do throws(EngineError) {
        while page.isEmpty {
          if missedCount > 0 { throw missed }
          let count = sequence.reader.notifier.generation
          let read = try await sequence.read(after: cursor, account)
          try checkRemovals(read.page)
          take(read)
          if page.isEmpty, missedCount == 0 {
            let wake = await sequence.reader.notifier.waitForChange(
              after: count, in: sequence.channels)
            if wake == .cancelled { return end() }
          }
        }
      } catch {
        isOver = true
        throw error
      }
      let message = page.removeFirst()
      cursor = message.timetoken.rawValue
      return message
    }

    /// Takes a page, and looks what was gone before it was read.
    private mutating func take(_ read: LogRead) {
      page = read.page.messages[...]
      var account = read.account
      account.give(page.count + read.skippedCount)
      var skippedCount = read.skippedCount
      if read.endsLog {
        missedCount = account.missedCount(publishedCount: read.page.publishedCount)
        if sequence.overflow.newestCount != nil {
          // A reader that skips is told with the next message.
          if !page.isEmpty {
            skippedCount += missedCount
            account.give(missedCount)
          }
          missedCount = 0
        }
      }
      if !page.isEmpty { page[page.startIndex].skippedCount = skippedCount }
      self.account = account
    }

    /// - Throws: `messagesRemoved` if some were taken away before this reader.
    private mutating func checkRemovals(_ page: LogPage) throws(EngineError) {
      let before = removedBefore ?? page.removedThrough
      removedBefore = before
      for (channel, removed) in page.removedThrough
      where removed > Swift.max(cursor ?? 0, before[channel] ?? 0) {
        throw EngineError(
          .messagesRemoved,
          "messages of \(channel) up to \(removed) were removed before this reader saw them",
          hint: "begin again behind \(removed), or keep messages longer than readers lag")
      }
    }

    private var missed: EngineError {
      let channels = sequence.channels
      let one = channels.count == 1 ? channels.first : nil
      let place = one?.description ?? "\(channels.count) channels"
      return EngineError(
        .messagesRemoved,
        "\(missedCount) messages of \(place) were acknowledged or expired, and left the log, before "
          + "this reader saw them",
        hint: "let the channel keep acknowledged messages, and begin again"
          + (cursor.map { " behind \($0)" } ?? ""))
    }

    private mutating func end() -> LogMessage? {
      isOver = true
      page = []
      return nil
    }
  }

  private func read(
    after cursor: Int64?, _ account: ReadingAccount?
  ) async throws(EngineError) -> LogRead {
    let query = LogQuery(
      channels: channels, cursor: cursor,
      maximumCount: Swift.min(Self.pageCount, overflow.newestCount ?? .max),
      maximumByteCount: pageByteCount)
    let overflow = overflow
    return try await reader.read(during: "reading the log") { db in
      var query = query
      let account = try account ?? ReadingAccount(query, db)
      let skippedCount = try overflow.skip(&query, db)
      let page = try EngineDatabase.page(query, db)
      return LogRead(
        page: page, skippedCount: skippedCount,
        endsLog: try EngineDatabase.endsLog(page, of: query, db), account: account)
    }
  }
}

/// One look at the log for a live reader.
private struct LogRead: Sendable {
  let page: LogPage
  /// Messages that the reader skips before the page.
  let skippedCount: Int
  /// Whether nothing came after the page.
  let endsLog: Bool
  /// As it was before the page.
  let account: ReadingAccount
}

/// Where a live sequence begins, as its place was found in the log.
struct LogStart: Sendable {
  /// The first message comes after it; nil is the beginning.
  var cursor: Int64?
  /// Whether the reader is not told of what retention or a purge had removed when it began.
  var forgivesRemovals = false
  /// Of a reader that is also told of what comes and goes before its first read; nil for another.
  var account: ReadingAccount?
}

extension EngineDatabase {
  /// Finds the place of a live sequence, in the caller's snapshot.
  static func find(
    _ position: LogPosition, in channels: Set<Channel>, _ db: Database
  ) throws -> LogStart {
    switch position.kind {
    case .beginning:
      return LogStart(cursor: nil, forgivesRemovals: true)
    case .after(let timetoken):
      return LogStart(cursor: timetoken.rawValue)
    case .now:
      return LogStart(
        cursor: try highWater(db),
        account: ReadingAccount(
          aheadCount: 0, publishedCount: try publishedCount(channels, db)))
    case .newest(let count):
      let ids = try knownChannels(channels, db).map(\.id)
      let keys = try nearestKeys(in: ids, from: .max, order: .newestFirst, count: count, db)
      return LogStart(
        cursor: keys.last.map { $0.timetoken - 1 }, forgivesRemovals: true,
        account: ReadingAccount(
          aheadCount: keys.count, publishedCount: try publishedCount(channels, db)))
    }
  }

  /// How many messages were ever published to the channels; only its growth means something.
  static func publishedCount(_ channels: Set<Channel>, _ db: Database) throws -> Int {
    try knownChannels(channels, db).reduce(0) { $0 + $1.publishedCount }
  }
}

/// What a live reader was given, against what there was for it.
///
/// What consumers have acknowledged, and what has expired, leaves the log and no trace of its place. So
/// each channel counts what was ever published to it: a reader that has come to the end of the log has
/// been given what was there when it began, and as many as the count has grown by since, or it has
/// missed some.
struct ReadingAccount: Sendable {
  /// What there would have been for the reader if nothing had ever been published before.
  private let offset: Int
  /// Messages that it was given, or was told of otherwise.
  private var givenCount = 0

  /// - Parameters:
  ///   - aheadCount: the messages before the reader where it begins.
  ///   - publishedCount: how many were ever published to its channels, in the same snapshot.
  init(aheadCount: Int, publishedCount: Int) {
    offset = aheadCount - publishedCount
  }

  /// Begins where `query` does, in the caller's snapshot.
  ///
  /// It takes time in proportion to the messages before the reader, and reads the index alone.
  init(_ query: LogQuery, _ db: Database) throws {
    self.init(
      aheadCount: try EngineDatabase.messageCount(
        of: query.channels, after: query.cursor ?? .min, db),
      publishedCount: try EngineDatabase.publishedCount(query.channels, db))
  }

  /// Takes in messages that the reader is given, or is told of.
  mutating func give(_ count: Int) { givenCount += count }

  /// How many messages are gone that the reader was not given; it has come to the end of the log.
  ///
  /// Software of an older schema does not count what it publishes: there can seem to be fewer.
  func missedCount(publishedCount: Int) -> Int {
    max(0, offset + publishedCount - givenCount)
  }
}

extension OverflowPolicy {
  /// Moves the cursor to before the newest messages that are kept, and says how many it passed.
  func skip(_ query: inout LogQuery, _ db: Database) throws -> Int {
    guard let newestCount else { return 0 }
    let ids = try EngineDatabase.knownChannels(query.channels, db).map(\.id)
    let newest = try EngineDatabase.nearestKeys(
      in: ids, from: .max, order: .newestFirst, count: newestCount, db)
    guard newest.count == newestCount, let oldest = newest.last?.timetoken else { return 0 }
    let cursor = query.cursor ?? .min
    guard oldest > cursor else { return 0 }
    let skippedCount = try EngineDatabase.messageCount(
      of: query.channels, after: cursor, before: oldest, db)
    if skippedCount > 0 { query.cursor = oldest - 1 }
    return skippedCount
  }
}
