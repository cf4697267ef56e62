extension [STOMPFrame] {
  /// Frames whose messages have ids: the id itself, or with a number behind it if there are several.
  func identified(_ id: String?) -> [STOMPFrame] {
    guard let id else { return self }
    return enumerated().map { index, frame in
      guard frame.command == "SEND" else { return frame }
      var frame = frame
      frame.append(Deduplication.idHeader, count == 1 ? id : "\(id)-\(index)")
      return frame
    }
  }
}

/// How a publication is repeated whose outcome is not known.
struct STOMPRepetition: Sendable {
  private static let maximumCount = 5

  private let deduplicationID = Deduplication.makeID()
  private let start: ContinuousClock.Instant
  /// The first error after which the outcome was not known.
  private var unknown: MessagingClientError?
  private var hasID = false
  private var count = 0

  init(at now: ContinuousClock.Instant) { start = now }

  /// How long to wait before the next attempt; nil before the first one.
  func wait(_ backoff: Backoff) -> Duration? {
    guard count > 0 else { return nil }
    var generator = SystemRandomNumberGenerator()
    return backoff.wait(afterFailures: count, &generator)
  }

  /// The id of the next attempt; nil for a server that knows none.
  ///
  /// - Throws: `outcomeUnknown` if the server does not know an earlier attempt.
  mutating func id(
    _ window: Duration?, at now: ContinuousClock.Instant
  ) throws(MessagingClientError) -> String? {
    if let unknown {
      // Half of the window, because the attempt takes its time too.
      guard hasID, let window, now - start < window / 2 else { throw unknown }
    }
    hasID = window != nil
    return hasID ? deduplicationID : nil
  }

  /// Notes that an attempt has failed.
  ///
  /// - Throws: the error, if there is no other attempt.
  mutating func failed(_ error: MessagingClientError) throws(MessagingClientError) {
    guard let first = unknown ?? (error.code == .outcomeUnknown ? error : nil) else { throw error }
    unknown = first
    // A refusal of a repetition says nothing of the first attempt.
    let passes: [MessagingClientError.Code] = [
      .outcomeUnknown, .cannotConnect, .unavailable, .busy,
    ]
    guard hasID, count < Self.maximumCount, passes.contains(error.code) else { throw first }
    count += 1
  }
}
