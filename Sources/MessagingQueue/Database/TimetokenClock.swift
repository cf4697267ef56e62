internal import FileLayer
internal import Foundation
internal import GRDB

/// Assigns timetokens within one write transaction.
///
/// A timetoken is the wall clock's time in units of 100 ns since 1970, or the last assigned
/// timetoken plus one, whichever is greater.
struct TimetokenClock {
  /// The greatest timetoken that was assigned before.
  let start: Int64
  private var highWater: Int64
  private let now: Int64

  /// Reads the high-water mark: the greatest timetoken that the database has ever assigned.
  init(_ db: Database, now: UnixTime) throws {
    start = try EngineDatabase.highWater(db)
    highWater = start
    self.now = now.nanoseconds / 100
  }

  /// Assigns the next timetoken.
  ///
  /// - Parameter step: the timetoken is a multiple of it.
  /// - Throws: `damaged` if the last possible timetoken is already assigned.
  mutating func next(multipleOf step: Int64 = 1) throws(EngineError) -> Timetoken {
    highWater = try upcoming(multipleOf: step)
    return Timetoken(unchecked: highWater)
  }

  /// The timetoken that ``next(multipleOf:)`` would assign.
  func upcoming(multipleOf step: Int64) throws(EngineError) -> Int64 {
    guard highWater <= Timetoken.greatest.rawValue - step else {
      throw EngineError(
        .damaged,
        "the message database says that it has given out the last timetoken (\(highWater))",
        hint: "run datavault queue verify; datavault queue salvage corrects it")
    }
    let least = max(now, highWater + 1)
    return (least + step - 1) / step * step
  }

  /// Takes the next `count` numbers, which no message will get, from a multiple of 100 on.
  ///
  /// - Throws: as ``next(multipleOf:)``.
  mutating func reserve(_ count: Int64) throws(EngineError) -> ClosedRange<Int64> {
    let first = try next(multipleOf: 100).rawValue
    guard count > 0, first <= Timetoken.greatest.rawValue - count else {
      throw EngineError(.invalidArgument, "\(count) timetokens cannot be reserved after \(first)")
    }
    highWater = first + count - 1
    return first...highWater
  }

  /// Assigns the timetoken of an imported message, if it is greater than all before; otherwise nil.
  mutating func keep(_ timetoken: Int64) -> Timetoken? {
    guard timetoken > highWater else { return nil }
    highWater = timetoken
    return Timetoken(unchecked: timetoken)
  }

  /// Makes all later timetokens greater than this one.
  mutating func raise(to timetoken: Int64) { highWater = max(highWater, timetoken) }

  /// Persists the high-water mark; call it in the same transaction.
  ///
  /// - Parameter countsCommit: whether it counts the commit too, in the same row.
  /// - Returns: the number of the last commit that is counted.
  @discardableResult
  func store(_ db: Database, countsCommit: Bool = false) throws -> Int64? {
    try db.number(
      """
      UPDATE engine SET timetoken_high_water = ?, commit_number = commit_number + ?
      RETURNING commit_number
      """, highWater, countsCommit ? 1 : 0)
  }
}

/// Times of the wall clock as the tables store them: units of 100 ns since 1970, like timetokens.
///
/// Only times that must survive a reboot use this clock: delays of publishers, times to live, ages,
/// and the deduplication window.
enum WallTime {
  static func date(_ ticks: Int64) -> Date { Date(timeIntervalSince1970: Double(ticks) / 1e7) }

  static func ticks(of time: UnixTime) -> Int64 { time.nanoseconds / 100 }

  static func ticks(of duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 10_000_000 + attoseconds / 100_000_000_000
  }

  /// Dates outside the range of timetokens become the nearest one inside.
  static func ticks(of date: Date) -> Int64 {
    let ticks = date.timeIntervalSince1970 * 1e7
    return Int64(min(max(ticks, 0), Double(Timetoken.greatest.rawValue)))
  }
}
