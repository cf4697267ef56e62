internal import FileLayer

/// The time of a record of a replicated log, the same on all nodes, on the wall clock.
struct RecordTime: TimeSource {
  let ticks: Int64
  let clock: any TimeSource

  var now: UnixTime { UnixTime(nanoseconds: ticks * 100) }
  var sinceBoot: Duration { clock.sinceBoot }
  var bootID: String { clock.bootID }
}

extension EngineDatabase {
  /// How long a deduplication id is known; on a replicated home an hour, the same on all nodes.
  var deduplicationWindow: Duration {
    isReplicated ? .seconds(3600) : configuration.deduplicationWindow
  }

  /// These tables, at another time of the wall clock.
  ///
  /// - Parameter ticks: in units of 100 ns since 1970.
  package func at(_ ticks: Int64) -> EngineDatabase {
    EngineDatabase(self, time: RecordTime(ticks: ticks, clock: time))
  }
}
