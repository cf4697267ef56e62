/// A message as a reader of the log sees it: to look at, leased to nobody.
public struct LogMessage: Sendable, Hashable {
  /// The message's place in the log, and the cursor to go on from.
  public let timetoken: Timetoken

  /// Where it was published.
  public let channel: Channel

  /// The bytes that were published.
  public let payload: [UInt8]

  /// The headers that were published.
  public let headers: [String: String]

  /// Which of the messages that are ready a receiver gets first; the log has them in their order.
  public let priority: Priority

  /// The key whose messages receivers get one after the other.
  public let orderingKey: String?

  /// From when on receivers may have it, by the wall clock, in units of 100 ns since 1970; nil for one
  /// that was published without a delay.
  public let due: Int64?

  /// From when on no receiver gets it, likewise; nil for never.
  public let expires: Int64?

  /// How many messages of the log were passed over right before this one.
  ///
  /// Always 0, except in a live sequence with ``OverflowPolicy/skip(toNewest:)``.
  public internal(set) var skippedCount: Int = 0
}

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
  /// ``LogMessage/skippedCount`` of the next message says how many it passed over.
  ///
  /// It looks whenever it has worked off what it has read: `count` messages at most.
  public static func skip(toNewest count: Int) -> OverflowPolicy {
    OverflowPolicy(newestCount: count)
  }
}

/// What one page of the log is to hold.
struct LogQuery: Sendable {
  var channels: Set<Channel>
  var order = HistoryOrder.oldestFirst
  /// Exclusive; nil is the beginning, or the end when reading back.
  var cursor: Int64?
  var maximumCount: Int
  var maximumByteCount: Int

  /// - Throws: `invalidArgument` unless both limits are positive.
  func check() throws(EngineError) {
    guard maximumCount > 0, maximumByteCount > 0 else {
      throw EngineError(
        .invalidArgument, "a page of \(maximumCount) messages and \(maximumByteCount) bytes",
        hint: "ask for at least one of each")
    }
  }
}

/// What was read.
struct LogPage: Sendable {
  var messages: [LogMessage] = []
  /// How far retention or a purge has removed messages of the channels, in the same snapshot.
  var removedThrough: [Channel: Int64] = [:]
  /// How many messages were ever published to the channels, in the same snapshot.
  var publishedCount = 0
  private var byteCount = 0
  private let maximumCount: Int
  private let maximumByteCount: Int

  init(_ query: LogQuery) {
    maximumCount = query.maximumCount
    maximumByteCount = query.maximumByteCount
  }

  /// Takes a message if it is within the limits; the first always is.
  mutating func append(_ message: LogMessage) -> Bool {
    let total = byteCount + message.payload.count + HeaderCoding.byteCount(of: message.headers)
    if messages.count == maximumCount || !messages.isEmpty && total > maximumByteCount {
      return false
    }
    byteCount = total
    messages.append(message)
    return true
  }
}
