/// The messages of one or several channels, from a place in the log on, for as long as the engine
/// runs: first those that are there, then each as it is committed.
///
/// None is missing between the two and none comes twice: both are reads of the log by a cursor, and
/// only a reader that has come to its end waits. Messages come in the order of their timetokens.
/// Each iterator starts where the sequence does. Nothing but the page that was read last is in
/// memory; ``OverflowPolicy`` says what a slow reader can do about its lag.
///
/// Cancelling the task ends the sequence. Stopping the engine ends it with `stopped`.
public struct LogMessages: AsyncSequence, Sendable {
  /// What it yields.
  public typealias Element = LogMessage
  /// What it throws.
  public typealias Failure = EngineError

  let reader: LogReader
  let channels: Set<Channel>
  let cursor: Int64?
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
    /// What had been removed before the reader began at the beginning: it was not to see that.
    private var removedBefore: [Channel: Int64]?

    init(_ sequence: LogMessages) {
      self.sequence = sequence
      cursor = sequence.cursor
    }

    /// The next message, as soon as there is one; nil once the task is cancelled.
    ///
    /// - Throws: `stopped`, `vaultLocked`; `messagesRemoved` if messages were removed from the log
    ///   that this reader has not seen; `damaged`, `inputOutput`. The sequence is over then.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(EngineError) -> LogMessage? {
      if isOver || Task.isCancelled { return end() }
      do {
        while page.isEmpty {
          let count = sequence.reader.bell.ringCount
          let read = try await sequence.read(after: cursor)
          try checkRemovals(read)
          page = read.messages[...]
          if page.isEmpty {
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

    /// - Throws: `messagesRemoved` if some were taken away before this reader.
    private mutating func checkRemovals(_ page: LogPage) throws(EngineError) {
      let before = removedBefore ?? (cursor == nil ? page.removedThrough : [:])
      removedBefore = before
      for (channel, removed) in page.removedThrough
      where removed > Swift.max(cursor ?? 0, before[channel] ?? 0) {
        throw EngineError(
          .messagesRemoved,
          "messages of \(channel) up to \(removed) were removed before this reader saw them",
          hint: "begin anew behind \(removed), or keep messages longer than readers lag")
      }
    }

    private mutating func end() -> LogMessage? {
      isOver = true
      page = []
      return nil
    }
  }

  private func read(after cursor: Int64?) async throws(EngineError) -> LogPage {
    let query = LogQuery(
      channels: channels, cursor: cursor,
      maximumCount: Swift.min(Self.pageCount, overflow.newestCount ?? .max),
      maximumByteCount: pageByteCount)
    let overflow = overflow
    return try await reader.read(during: "reading the log") { db in
      var query = query
      let passedOverCount = try overflow.skip(&query, db)
      var page = try EngineDatabase.page(query, db)
      if !page.messages.isEmpty { page.messages[0].passedOverCount = passedOverCount }
      return page
    }
  }
}
