internal import FileLayer
internal import Foundation
internal import GRDB

/// Hands out timetokens within one write transaction: the time, or one more than the last that was
/// ever handed out, whichever is greater.
struct TimetokenClock {
  /// The greatest timetoken that was handed out before.
  let start: Int64
  private var highWater: Int64
  private let now: Int64

  /// Reads the persisted high-water mark.
  init(_ db: Database, now: UnixTime) throws {
    let select = try EngineStatement(db, "SELECT timetoken_high_water FROM engine")
    guard let highWater = try select.number() else { throw EngineError.engineRowMissing }
    start = highWater
    self.highWater = highWater
    self.now = now.nanoseconds / 100
  }

  mutating func next() -> Timetoken {
    highWater = max(now, highWater + 1)
    return Timetoken(unchecked: highWater)
  }

  /// Hands out a timetoken that a message had elsewhere, if it is greater than all before; else nil.
  mutating func keep(_ timetoken: Int64) -> Timetoken? {
    guard timetoken > highWater else { return nil }
    highWater = timetoken
    return Timetoken(unchecked: timetoken)
  }

  /// Hands out none up to this one from now on.
  mutating func raise(to timetoken: Int64) { highWater = max(highWater, timetoken) }

  /// Persists the mark; belongs into the same transaction.
  func store(_ db: Database) throws {
    try EngineStatement(db, "UPDATE engine SET timetoken_high_water = ?").execute(highWater)
  }
}

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
