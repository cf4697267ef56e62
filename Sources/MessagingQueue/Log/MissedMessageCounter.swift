internal import GRDB

/// Compares the messages that a live reader was given with those that it should have been given.
///
/// Messages that are acknowledged or expired leave the log without a trace of their place. So each
/// channel counts what was ever published to it. A reader at the end of the log must have been
/// given the messages that were there when it began, plus the growth of that count; otherwise it
/// has missed some.
///
/// A channel that is removed and added again counts from 0, under another number.
struct MissedMessageCounter: Sendable {
  private let aheadCount: Int
  private let publishedCountAtStart: Int
  /// The last count of each channel that the reader has seen, by number.
  private var publishedCounts: [Int64: Int]
  /// Messages that the reader was given, or that were reported as skipped.
  private var deliveredCount = 0

  /// - Parameters:
  ///   - aheadCount: the messages after the reader's place when it begins.
  ///   - publishedCounts: how many messages were ever published to its channels, in the same
  ///     snapshot.
  init(aheadCount: Int, publishedCounts: [Int64: Int]) {
    self.aheadCount = aheadCount
    self.publishedCounts = publishedCounts
    publishedCountAtStart = Self.sum(publishedCounts)
  }

  private static func sum(_ counts: [Int64: Int]) -> Int { counts.values.reduce(0, &+) }

  /// Begins at the place of `query`, in the caller's snapshot.
  ///
  /// The time is proportional to the messages after that place; only the index is read.
  init(_ query: LogQuery, _ db: Database) throws {
    self.init(
      aheadCount: try EngineDatabase.messageCount(
        of: query.channels, after: query.cursor ?? .min, db),
      publishedCounts: try EngineDatabase.publishedCounts(query.channels, db))
  }

  /// Notes how many messages were published until a read.
  mutating func note(publishedCounts counts: [Int64: Int]) {
    publishedCounts.merge(counts) { $1 }
  }

  /// Adds messages that the reader is given, or that are reported as skipped.
  mutating func add(delivered count: Int) { deliveredCount += count }

  /// How many messages a reader at the end of the log has missed.
  ///
  /// Software with an older schema does not count what it publishes, so the count can be too low.
  var missedCount: Int {
    max(0, aheadCount &+ Self.sum(publishedCounts) &- publishedCountAtStart &- deliveredCount)
  }
}
