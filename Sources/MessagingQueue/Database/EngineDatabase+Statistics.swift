internal import FileLayer
internal import GRDB

extension EngineDatabase {
  /// Counts what is there, in one snapshot; blocks no writer.
  package func statistics() throws(EngineError) -> EngineStatistics {
    try read(during: "counting") { db in try statistics(db) }
  }

  /// Counts what is there in the caller's snapshot; see ``StatisticsReader``.
  ///
  /// - Parameter channel: the one to be counted; nil for all.
  func statistics(_ db: Database, of channel: Channel? = nil) throws -> EngineStatistics {
    try StatisticsReader(
      db: db, bootNumber: bootNumber, bootNow: nanosecondsSinceBoot,
      wallNow: WallTime.ticks(of: time.now)
    ).read(channel)
  }
}
