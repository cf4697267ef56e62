public import Foundation

/// A message of the log, read without a lease.
public struct LogMessage: Sendable, Hashable {
  /// The message's place in the log, and the cursor to continue from.
  public let timetoken: Timetoken

  /// The channel of the message.
  public let channel: Channel

  /// The bytes that were published.
  public let payload: [UInt8]

  /// The headers that were published.
  public let headers: [String: String]

  /// The message's priority for receivers; the log keeps the order of publishing.
  public let priority: Priority

  /// The message's ordering key: receivers get messages with the same key one after the other.
  public let orderingKey: String?

  /// ``availabilityDate``, exactly: in units of 100 ns since 1970.
  package let availabilityTicks: Int64?

  /// ``expirationDate``, exactly: in units of 100 ns since 1970.
  package let expirationTicks: Int64?

  /// How many messages of the log a live sequence skipped directly before this one.
  ///
  /// Always 0, unless the sequence has ``OverflowPolicy/skip(toNewest:)``.
  public internal(set) var skippedCount: Int = 0

  /// Makes a message that is not in the log, with a place between those that are.
  package init(
    timetoken: Timetoken, channel: Channel, payload: [UInt8], headers: [String: String] = [:]
  ) {
    self.init(
      timetoken: timetoken, channel: channel, payload: payload, headers: headers,
      priority: .normal, orderingKey: nil, availabilityTicks: nil, expirationTicks: nil)
  }

  init(
    timetoken: Timetoken, channel: Channel, payload: [UInt8], headers: [String: String],
    priority: Priority, orderingKey: String?, availabilityTicks: Int64?, expirationTicks: Int64?
  ) {
    self.timetoken = timetoken
    self.channel = channel
    self.payload = payload
    self.headers = headers
    self.priority = priority
    self.orderingKey = orderingKey
    self.availabilityTicks = availabilityTicks
    self.expirationTicks = expirationTicks
  }

  /// When receivers can get the message, by the wall clock; nil if it was published without a
  /// delay.
  public var availabilityDate: Date? { availabilityTicks.map(WallTime.date) }

  /// When receivers stop getting the message, by the wall clock; nil for never.
  public var expirationDate: Date? { expirationTicks.map(WallTime.date) }
}

/// The place where a live sequence begins.
public struct LogPosition: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case beginning
    case now
    case after(Timetoken)
    case newest(Int)
  }

  let kind: Kind

  /// The oldest message in the log.
  public static let beginning = LogPosition(kind: .beginning)

  /// The first message that is committed after the call.
  public static let now = LogPosition(kind: .now)

  /// The first message after the one with this timetoken, which need not exist.
  public static func after(_ timetoken: Timetoken) -> LogPosition {
    LogPosition(kind: .after(timetoken))
  }

  /// The newest `count` messages in the log.
  ///
  /// - Parameter count: at least 1.
  public static func newest(_ count: Int) -> LogPosition {
    LogPosition(kind: .newest(count))
  }
}

/// The order of a page of history.
public enum HistoryOrder: Sendable, Hashable {
  /// From the cursor towards newer messages, the oldest first.
  case oldestFirst
  /// From the cursor towards older messages, the newest first.
  case newestFirst
}

/// The behaviour of a live sequence whose reader is slower than the publishers.
///
/// The log is the buffer: waiting messages are on the disk, not in memory, and publishers do not
/// wait.
public struct OverflowPolicy: Sendable, Hashable {
  /// nil: the sequence waits.
  let newestCount: Int?

  /// The reader falls behind and gets everything that the log still has.
  public static let wait = OverflowPolicy(newestCount: nil)

  /// A reader with more than `count` messages before it skips to the newest `count`.
  ///
  /// ``LogMessage/skippedCount`` of the next message says how many it skipped. The sequence checks
  /// after each page, which has at most `count` messages.
  public static func skip(toNewest count: Int) -> OverflowPolicy {
    OverflowPolicy(newestCount: count)
  }
}

/// The page of the log to read.
struct LogQuery: Sendable {
  var channels: Set<Channel>
  var order = HistoryOrder.oldestFirst
  /// The page begins after this timetoken, in reading order; nil is the beginning, or the end for
  /// `newestFirst`.
  var cursor: Int64?
  var maximumCount: Int
  var maximumByteCount: Int
}

/// A page of the log.
struct LogPage: Sendable {
  var messages: [LogMessage] = []
  /// The timetoken up to which retention or a purge has removed a channel's messages, in the same
  /// snapshot.
  var removedThrough: [Channel: Int64] = [:]
  /// How many messages were ever published to the channels, by their numbers, in the same snapshot.
  var publishedCounts: [Int64: Int] = [:]
  private var byteCount = 0
  private let maximumCount: Int
  private let maximumByteCount: Int

  init(_ query: LogQuery) {
    maximumCount = query.maximumCount
    maximumByteCount = query.maximumByteCount
  }

  /// Appends a message and returns true, unless it would exceed the limits.
  ///
  /// The first message is appended even if it exceeds the limit of bytes.
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
