public import Foundation

/// A message to publish with ``MessagingEngine/publish(_:)-(Message)``: bytes for a channel.
///
/// Priority, delay, time to live and ordering key concern receivers only. History and live
/// subscribers see a message in its place as soon as it is published.
public struct Message: Sendable, Hashable {
  /// The channel to publish to.
  public var channel: Channel

  /// The content: any bytes, or none; receivers get exactly these bytes.
  public var payload: [UInt8]

  /// Values by name that describe the payload; a name has 1 to 255 bytes.
  ///
  /// Their sum is at most ``EngineConfiguration/maximumHeaderByteCount``. Default: none.
  public var headers: [String: String]

  /// The priority: of the messages that are ready, a receiver gets the highest first.
  ///
  /// Default: 4, normal.
  public var priority: Priority

  /// When receivers can get the message.
  ///
  /// Default: immediately.
  public var availability: Availability

  /// How long after publishing receivers can get the message, by the wall clock.
  ///
  /// Default: nil, for ever.
  public var timeToLive: Duration?

  /// The end of the time to live, in units of 100 ns since 1970, in place of ``timeToLive``: an
  /// imported copy ends with its original.
  package var expirationTicks: Int64?

  /// The key that orders messages.
  ///
  /// A consumer has at most one message with the same key at a time, in the order of publishing. A
  /// delayed message holds back no other. 1 to 255 bytes; not together with a priority. Default:
  /// nil, the message waits for no other.
  public var orderingKey: String?

  /// The id by which the engine recognises a message that is published twice.
  ///
  /// If another message with this id was published to this channel within
  /// ``EngineConfiguration/deduplicationWindow``, publishing stores nothing and returns the first
  /// message's timetoken. 1 to 255 bytes. Default: nil.
  public var deduplicationID: String?

  /// Makes a message of bytes; the other arguments are the properties of the same names.
  public init(
    channel: Channel, payload: [UInt8], headers: [String: String] = [:],
    priority: Priority = .normal, availability: Availability = .immediately,
    timeToLive: Duration? = nil, orderingKey: String? = nil, deduplicationID: String? = nil
  ) {
    self.channel = channel
    self.payload = payload
    self.headers = headers
    self.priority = priority
    self.availability = availability
    self.timeToLive = timeToLive
    self.orderingKey = orderingKey
    self.deduplicationID = deduplicationID
  }

  /// Makes a message of a text, of JSON or of bytes.
  ///
  ///     Message(channel: mails, "to: Ada", availability: .after(.seconds(60)))
  ///     Message(channel: mails, try .json(mail), deduplicationID: mail.id)
  public init(
    channel: Channel, _ content: Content, headers: [String: String] = [:],
    priority: Priority = .normal, availability: Availability = .immediately,
    timeToLive: Duration? = nil, orderingKey: String? = nil, deduplicationID: String? = nil
  ) {
    self.init(
      channel: channel, payload: content.bytes, headers: headers, priority: priority,
      availability: availability, timeToLive: timeToLive, orderingKey: orderingKey,
      deduplicationID: deduplicationID)
  }

  /// When receivers can get a message, by the wall clock, so that it survives a restart.
  public struct Availability: Sendable, Hashable {
    enum Moment: Hashable {
      case after(Duration)
      /// Units of 100 ns since 1970.
      case at(Int64)
    }

    let moment: Moment

    /// The date in units of 100 ns since 1970; nil for a delay.
    var ticks: Int64? { if case .at(let ticks) = moment { ticks } else { nil } }

    /// As soon as the message is published.
    public static let immediately = Availability(moment: .after(.zero))

    /// After `delay`, at most ``EngineConfiguration/maximumLeaseDuration``.
    public static func after(_ delay: Duration) -> Availability {
      Availability(moment: .after(delay))
    }

    /// From `date` on, in the year 2286 at the latest; immediately if that is past.
    public static func at(_ date: Date) -> Availability { at(ticks: WallTime.ticks(of: date)) }

    /// From a time in units of 100 ns since 1970, exactly.
    package static func at(ticks: Int64) -> Availability { Availability(moment: .at(ticks)) }
  }
}

extension Message {
  /// Bytes that count towards a channel's limit.
  package var byteCount: Int { payload.count + HeaderCoding.byteCount(of: headers) }

  /// Throws if an engine with this configuration refuses the message; `which` names it in the
  /// error.
  package func check(_ configuration: EngineConfiguration, as which: String) throws(EngineError) {
    guard payload.count <= configuration.maximumPayloadByteCount else {
      throw EngineError(
        .payloadTooLarge,
        "\(which) has \(payload.count) bytes, the limit is \(configuration.maximumPayloadByteCount)",
        hint: "split it; a program can raise its engine's maximumPayloadByteCount")
    }
    try checkHeaders(configuration, as: which)
    for (text, what) in [(orderingKey, "ordering key"), (deduplicationID, "deduplication id")] {
      if let text, let fault = Name.fault(in: text) {
        throw EngineError(.invalidArgument, "the \(what) of \(which) \(fault)", hint: Name.rule)
      }
    }
    try EngineError.requireArgument(
      orderingKey == nil || priority == .normal, "\(which) has an ordering key and a priority",
      hint: "messages of one key are received in the order of publishing; leave one of the two out")
    if case .after(let delay) = availability.moment {
      try EngineError.requireArgument(
        delay >= .zero && delay <= EngineConfiguration.maximumLeaseDuration,
        "\(which) has a delay of \(delay)", hint: "use a delay from 0 to 366 days")
    }
    for (ticks, what) in [(availability.ticks, "delivery"), (expirationTicks, "expiration")] {
      try EngineError.requireArgument(
        ticks ?? 0 <= Timetoken.greatest.rawValue, "the date of \(what) of \(which) is too late",
        hint: "use a date before 2286-11-20")
    }
    if let timeToLive {
      try EngineError.requireArgument(
        timeToLive > .zero && timeToLive <= EngineConfiguration.maximumTimeToLive,
        "\(which) has a time to live of \(timeToLive)",
        hint: "use a time above 0 and at most 100 years")
    }
  }

  private func checkHeaders(
    _ configuration: EngineConfiguration, as which: String
  ) throws(EngineError) {
    if headers.isEmpty { return }
    for name in headers.keys {
      if let fault = Name.fault(in: name) {
        throw EngineError(
          .invalidArgument, "the name of a header of \(which) \(fault)", hint: Name.rule)
      }
    }
    let byteCount = HeaderCoding.byteCount(of: headers)
    guard byteCount <= configuration.maximumHeaderByteCount else {
      throw EngineError(
        .payloadTooLarge,
        "\(which) has \(byteCount) bytes of headers, the limit is \(configuration.maximumHeaderByteCount)",
        hint: "carry them in the payload; a program can raise its engine's maximumHeaderByteCount")
    }
  }
}

/// The priority of a message: 0 to 9, as in JMS; 4 is normal.
///
/// Of the messages that are ready, a receiver gets the highest priority first, and the oldest first
/// within one. The log keeps the order of publishing.
public struct Priority: Sendable, Hashable, Comparable {
  /// Priority 4.
  public static let normal = Priority(stored: 4)
  /// All priorities, the highest first.
  static let descending = (0...9).reversed().map(Priority.init(stored:))

  /// The number.
  public let rawValue: Int

  /// Takes a number from 0, the least urgent, to 9.
  ///
  /// - Throws: ``EngineError/Code/invalidArgument``.
  public init(_ number: Int) throws(EngineError) {
    try EngineError.requireArgument(
      (0...9).contains(number), "there is no priority \(number)", hint: "use 0 to 9; 4 is normal")
    rawValue = number
  }

  /// A priority that was checked when it was stored.
  init(stored number: Int) {
    rawValue = number
  }

  /// Whether `a` comes after `b`.
  public static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}
