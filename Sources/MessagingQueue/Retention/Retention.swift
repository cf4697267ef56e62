/// How long a channel's log keeps messages.
///
/// Without limits, the default, a message stays until every consumer of its channel has acknowledged
/// it, and then goes. A limit takes the oldest messages first, and only what no consumer needs any more,
/// unless ``discardsUnacknowledged`` says otherwise. A channel that nobody has received from yet has no
/// consumers: add those whose messages the limits are to spare with
/// ``MessagingEngine/addConsumer(_:of:maximumAttempts:)``.
public struct Retention: Sendable, Hashable {
  /// Whether the log keeps messages that every consumer has acknowledged, up to the limits.
  ///
  /// Default: false.
  public var keepsAcknowledged = false

  /// The age from which a message may go, by the wall clock.
  ///
  /// Default: nil, at any age.
  public var maximumAge: Duration?

  /// The most messages of the log; those beyond may go.
  ///
  /// Default: nil, no limit.
  public var maximumMessageCount: Int?

  /// The most bytes of the log's payloads and headers; messages beyond may go.
  ///
  /// Default: nil, no limit.
  public var maximumByteCount: Int?

  /// Whether the limits also take messages that a consumer has not received, has in hand, or has among
  /// its dead letters.
  ///
  /// Default: false.
  public var discardsUnacknowledged = false

  /// Makes the default: gone when every consumer has acknowledged it.
  public init() {}

  /// Whether there is anything for a sweep to do.
  var hasLimits: Bool {
    maximumAge != nil || maximumMessageCount != nil || maximumByteCount != nil
  }

  func check() throws(EngineError) {
    for (limit, what) in [(maximumMessageCount, "messages"), (maximumByteCount, "bytes")] {
      if let limit, limit < 0 {
        throw EngineError(
          .invalidArgument, "a limit of \(limit) \(what)", hint: "use nothing or more")
      }
    }
    if let maximumAge, maximumAge < .zero || maximumAge > EngineConfiguration.longestTimeToLive {
      throw EngineError(
        .invalidArgument, "a longest age of \(maximumAge)", hint: "nothing, or at most 100 years")
    }
  }
}
