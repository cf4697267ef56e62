internal import FileLayer
internal import Foundation

/// Times of the wall clock as the tables hold them: units of 100 ns since 1970, like timetokens.
///
/// Only what must outlive a reboot goes by this clock: delays that a publisher asked for, times to
/// live, ages, the window of deduplication.
enum WallTime {
  static func ticks(of time: UnixTime) -> Int64 { time.nanoseconds / 100 }

  static func ticks(of duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 10_000_000 + attoseconds / 100_000_000_000
  }

  /// Dates beyond the reach of timetokens count as the nearest that is not.
  static func ticks(of date: Date) -> Int64 {
    let ticks = date.timeIntervalSince1970 * 1e7
    return Int64(min(max(ticks, 0), Double(Timetoken.greatest.rawValue)))
  }
}
