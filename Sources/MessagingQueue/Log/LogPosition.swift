/// Where a live sequence begins.
public struct LogPosition: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case beginning
    case now
    case after(Timetoken)
    case newest(Int)
  }

  let kind: Kind

  /// With the oldest message that is kept.
  public static let beginning = LogPosition(kind: .beginning)

  /// With the first message that is committed after the call.
  public static let now = LogPosition(kind: .now)

  /// With the first message after the one of this timetoken, which need not exist.
  public static func after(_ timetoken: Timetoken) -> LogPosition {
    LogPosition(kind: .after(timetoken))
  }

  /// With the newest `count` messages that are kept.
  ///
  /// - Parameter count: at least 1.
  public static func newest(_ count: Int) -> LogPosition {
    LogPosition(kind: .newest(count))
  }
}

/// In which order a page of history is read.
public enum HistoryOrder: Sendable, Hashable {
  /// From the cursor on towards newer messages, the oldest first.
  case oldestFirst
  /// From the cursor back towards older messages, the newest first.
  case newestFirst
}

/// What a live sequence does when its reader is slower than the publishers.
///
/// The log is the buffer: what waits is on the disk, not in memory, and no publisher is held up.
public struct OverflowPolicy: Sendable, Hashable {
  /// nil: waits.
  let newestCount: Int?

  /// The reader lags and gets everything that the log still has.
  public static let wait = OverflowPolicy(newestCount: nil)

  /// A reader with more than `count` messages before it jumps to the newest `count`;
  /// ``LogMessage/passedOverCount`` of the next message says how many it passed over.
  ///
  /// It looks whenever it has worked off what it has read: `count` messages at most.
  public static func skip(toNewest count: Int) -> OverflowPolicy {
    OverflowPolicy(newestCount: count)
  }
}
