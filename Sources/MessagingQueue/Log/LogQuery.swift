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
