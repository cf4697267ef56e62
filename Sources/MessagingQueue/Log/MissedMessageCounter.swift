internal import GRDB

/// Compares the messages that a live reader was given with those that it should have been given.
///
/// Messages that are acknowledged or expired leave the log without a trace of their place. So each
/// channel counts what was ever published to it. A reader at the end of the log must have been
/// given the messages that were there when it began, plus the growth of that count; otherwise it
/// has missed some.
struct MissedMessageCounter: Sendable {
  private let aheadCount: Int
  private let publishedCountAtStart: Int
  /// Messages that the reader was given, or that were reported as skipped.
  private var deliveredCount = 0

  /// - Parameters:
  ///   - aheadCount: the messages after the reader's place when it begins.
  ///   - publishedCount: how many messages were ever published to its channels, in the same
  ///     snapshot.
  init(aheadCount: Int, publishedCount: Int) {
    self.aheadCount = aheadCount
    publishedCountAtStart = publishedCount
  }

  /// Begins at the place of `query`, in the caller's snapshot.
  ///
  /// The time is proportional to the messages after that place; only the index is read.
  init(_ query: LogQuery, _ db: Database) throws {
    self.init(
      aheadCount: try EngineDatabase.messageCount(
        of: query.channels, after: query.cursor ?? .min, db),
      publishedCount: try EngineDatabase.publishedCount(query.channels, db))
  }

  /// Adds messages that the reader is given, or that are reported as skipped.
  mutating func add(delivered count: Int) { deliveredCount += count }

  /// How many messages a reader at the end of the log has missed.
  ///
  /// Software with an older schema does not count what it publishes, so the count can be too low.
  func missedCount(publishedCount: Int) -> Int {
    max(0, aheadCount &+ publishedCount &- publishedCountAtStart &- deliveredCount)
  }
}
