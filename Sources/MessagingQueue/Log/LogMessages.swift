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
          let count = sequence.reader.bell.ringCount
          let read = try await sequence.read(after: cursor, account)
          try checkRemovals(read.page)
          take(read)
          if page.isEmpty, missedCount == 0 {
            let wake = await sequence.reader.bell.nextRing(after: count, in: sequence.channels)
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
      account.give(page.count + read.passedOverCount)
      var passedOverCount = read.passedOverCount
      if read.endsLog {
        missedCount = account.missedCount(publishedCount: read.page.publishedCount)
        if sequence.overflow.newestCount != nil {
          // A reader that skips is told with the next message.
          if !page.isEmpty {
            passedOverCount += missedCount
            account.give(missedCount)
          }
          missedCount = 0
        }
      }
      if !page.isEmpty { page[page.startIndex].passedOverCount = passedOverCount }
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
      let passedOverCount = try overflow.skip(&query, db)
      let page = try EngineDatabase.page(query, db)
      return LogRead(
        page: page, passedOverCount: passedOverCount,
        endsLog: try EngineDatabase.endsLog(page, of: query, db), account: account)
    }
  }
}

/// One look at the log for a live reader.
private struct LogRead: Sendable {
  let page: LogPage
  /// Messages that the reader skips before the page.
  let passedOverCount: Int
  /// Whether nothing came after the page.
  let endsLog: Bool
  /// As it was before the page.
  let account: ReadingAccount
}
