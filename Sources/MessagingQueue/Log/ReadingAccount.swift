internal import GRDB

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
