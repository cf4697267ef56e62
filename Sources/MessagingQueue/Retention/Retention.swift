/// How long a channel's log keeps messages.
///
/// Without limits, the default, a message stays until every consumer of its channel has
/// acknowledged it. A limit removes the oldest messages first, but only those that no consumer
/// needs, unless ``discardsUnacknowledged`` is set. A consumer exists from its first receive on, or
/// from ``MessagingEngine/addConsumer(_:of:maximumAttempts:)`` on, which protects messages for
/// consumers to come.
public struct Retention: Sendable, Hashable {
  /// Whether the log keeps messages that every consumer has acknowledged, up to the limits.
  ///
  /// Default: false.
  public var keepsAcknowledged = false

  /// The age from which messages are removed, by the wall clock.
  ///
  /// Default: nil, no limit.
  public var maximumAge: Duration?

  /// The most messages in the log, up to 2^53; older ones are removed.
  ///
  /// Default: nil, no limit.
  public var maximumMessageCount: Int?

  /// The most bytes of payloads and headers in the log, up to 2^53; older messages are removed.
  ///
  /// Default: nil, no limit.
  public var maximumByteCount: Int?

  /// Whether the limits also remove messages that a consumer has not received, has leased, or has
  /// among its dead letters.
  ///
  /// Default: false.
  public var discardsUnacknowledged = false

  /// The greatest limit: JSON readers that store numbers as doubles read no greater one exactly.
  static let greatestLimit = 1 << 53

  /// Makes the default: a message leaves the log after every consumer has acknowledged it.
  public init() {}

  /// Whether a sweep has limits to apply.
  var hasLimits: Bool {
    maximumAge != nil || maximumMessageCount != nil || maximumByteCount != nil
  }

  func check() throws(EngineError) {
    for (limit, what) in [(maximumMessageCount, "messages"), (maximumByteCount, "bytes")] {
      if let limit, limit < 0 || limit > Self.greatestLimit {
        throw EngineError(
          .invalidArgument, "the retention limit is \(limit) \(what)",
          hint: "use 0 to \(Self.greatestLimit)")
      }
    }
    if let maximumAge, maximumAge < .zero || maximumAge > EngineConfiguration.maximumTimeToLive {
      throw EngineError(
        .invalidArgument, "the maximum age is \(maximumAge)", hint: "use an age from 0 to 100 years"
      )
    }
  }
}
