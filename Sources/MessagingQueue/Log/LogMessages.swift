/// The messages of one or several channels: first those in the log from a place on, then each new
/// one after its commit.
///
/// The sequence runs as long as the engine. It neither loses nor repeats a message, as both parts
/// are reads of the log by a cursor, and only a reader at the end waits. Messages come in the order
/// of their timetokens. Each iterator starts where the sequence does. Only the current page is in
/// memory; ``OverflowPolicy`` says what a slow reader does about its lag.
///
/// A message that every consumer has acknowledged leaves the log, unless its channel keeps it
/// (``Retention/keepsAcknowledged``). A reader that comes too late for messages gets an error with
/// their number.
///
/// Cancelling the task ends the sequence. Stopping the engine ends it with `stopped`.
public struct LogMessages: AsyncSequence, Sendable {
  /// The element: a message of the log.
  public typealias Element = LogMessage
  /// The error that ends the sequence.
  public typealias Failure = EngineError

  let access: PoolAccess
  let notifier: ChangeNotifier
  let channels: Set<Channel>
  let start: LogStart
  let overflow: OverflowPolicy
  let pageByteCount: Int
  /// How long a reader waits before it looks again without a notification.
  ///
  /// Its place then follows the end of the log, and no removal of older messages concerns it. Default: 5 minutes.
  package var longestWait: Duration = .seconds(300)

  /// The most messages that one read takes into memory.
  static let pageCount = 256

  /// Starts at the place for which the sequence was made.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// Reads the log page by page.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: LogMessages
    private var cursor: Int64?
    private var page: ArraySlice<LogMessage> = []
    /// The end of the log, if the page was the last one: later messages come after it, whatever their channels.
    private var pageEnd: Int64?
    private var hasEnded = false
    /// The removals before the reader began, which are not reported to it.
    private var removedBefore: [Channel: Int64]?
    private var counter: MissedMessageCounter?
    /// Messages that were missing when the last page was read, which ended the log.
    private var missedCount = 0

    init(_ sequence: LogMessages) {
      self.sequence = sequence
      cursor = sequence.start.cursor
      counter = sequence.start.counter
      if !sequence.start.ignoresEarlierRemovals { removedBefore = [:] }
    }

    /// The next message, as soon as there is one; nil after the task is cancelled.
    ///
    /// - Throws: `stopped`, `vaultLocked`; `messagesRemoved` if messages were removed before this
    ///   reader saw them; `damaged`, `inputOutput`. The sequence has then ended.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(EngineError) -> LogMessage? {
      if hasEnded || Task.isCancelled { return end() }
      do throws(EngineError) {
        while page.isEmpty {
          if missedCount > 0 { throw missedError }
          let generation = sequence.notifier.generation
          let read = try await sequence.read(after: cursor, counter)
          try checkRemovals(read.page)
          accept(read)
          if page.isEmpty, missedCount == 0 {
            let wake = await sequence.notifier.waitForChange(
              after: generation, in: sequence.channels, within: sequence.longestWait)
            if wake == .cancelled { return end() }
          }
        }
      } catch {
        hasEnded = true
        throw error
      }
      let message = page.removeFirst()
      cursor = message.timetoken.rawValue
      if page.isEmpty, let pageEnd { cursor = pageEnd }
      return message
    }

    /// Keeps a page, and counts the messages that were missing before it was read.
    private mutating func accept(_ read: LogRead) {
      page = read.page.messages[...]
      var (counter, skippedCount) = (read.counter, read.skippedCount)
      counter.note(publishedCounts: read.page.publishedCounts)
      counter.add(delivered: page.count + skippedCount)
      missedCount = read.endsLog ? counter.missedCount : 0
      if sequence.overflow.newestCount != nil {
        // A reader that skips gets the number with the next message, and no error.
        if !page.isEmpty {
          skippedCount += missedCount
          counter.add(delivered: missedCount)
        }
        missedCount = 0
      }
      if !page.isEmpty { page[page.startIndex].skippedCount = skippedCount }
      self.counter = counter
      pageEnd = read.endsLog && missedCount == 0 ? read.highWater : nil
      if page.isEmpty, let pageEnd { cursor = Swift.max(cursor ?? 0, pageEnd) }
    }

    /// - Throws: `messagesRemoved` if messages were removed before this reader saw them.
    private mutating func checkRemovals(_ page: LogPage) throws(EngineError) {
      let before = removedBefore ?? page.removedThrough
      removedBefore = before
      for (channel, removed) in page.removedThrough
      where removed > Swift.max(cursor ?? 0, before[channel] ?? 0) {
        throw EngineError(
          .messagesRemoved,
          "messages of \(channel) up to \(removed) were removed before this reader saw them",
          hint: "begin again after \(removed), or keep messages longer than readers lag")
      }
    }

    private var missedError: EngineError {
      let channels = sequence.channels
      let one = channels.count == 1 ? channels.first : nil
      let place = one?.description ?? "\(channels.count) channels"
      return EngineError(
        .messagesRemoved,
        "\(missedCount) messages of \(place) were acknowledged or expired, and left the log, before "
          + "this reader saw them",
        hint: "let the channel keep acknowledged messages, and begin again"
          + (cursor.map { " after \($0)" } ?? ""))
    }

    private mutating func end() -> LogMessage? {
      hasEnded = true
      page = []
      return nil
    }
  }

  private func read(
    after cursor: Int64?, _ counter: MissedMessageCounter?
  ) async throws(EngineError) -> LogRead {
    let query = LogQuery(
      channels: channels, cursor: cursor,
      maximumCount: Swift.min(Self.pageCount, overflow.newestCount ?? .max),
      maximumByteCount: pageByteCount)
    let overflow = overflow
    return try await access.read(during: "reading the log") { db in
      var query = query
      let counter = try counter ?? MissedMessageCounter(query, db)
      let skippedCount = try overflow.skip(&query, db)
      var page = try EngineDatabase.page(query, db)
      let missing = query.channels.filter { page.removedThrough[$0] == nil }
      page.removedThrough.merge(try EngineDatabase.removedThrough(ofMissing: missing, db)) { $1 }
      return LogRead(
        page: page, skippedCount: skippedCount,
        endsLog: try EngineDatabase.endsLog(page, of: query, db), counter: counter,
        highWater: try EngineDatabase.highWater(db))
    }
  }
}

/// One read of the log for a live reader.
private struct LogRead: Sendable {
  let page: LogPage
  /// Messages that the reader skips before the page.
  let skippedCount: Int
  /// Whether the log ended with the page.
  let endsLog: Bool
  /// The counter before the page.
  let counter: MissedMessageCounter
  /// The greatest timetoken that was given out before the read.
  let highWater: Int64
}
