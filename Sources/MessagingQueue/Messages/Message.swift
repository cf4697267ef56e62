public import Foundation

/// What is handed to ``MessagingEngine/publish(_:)-(Message)``: bytes for a channel.
///
/// What a message asks for beyond that concerns its receivers; history and live subscribers see it in
/// its place as soon as it is published.
public struct Message: Sendable, Hashable {
  /// Where it goes.
  public var channel: Channel

  /// What it carries: any bytes, none included, returned exactly as they were given.
  public var payload: [UInt8]

  /// What is said about it: names of 1 to 255 bytes with any values.
  ///
  /// All together at most ``EngineConfiguration/maximumHeaderByteCount``. Default: none.
  public var headers: [String: String]

  /// Which of the messages that are ready a receiver gets first.
  ///
  /// Default: 4, normal.
  public var priority = Priority.normal

  /// When receivers may have it.
  ///
  /// Default: at once.
  public var availability = Availability.immediately

  /// After how long, from publishing, no receiver gets it any more.
  ///
  /// By the wall clock. Default: nil, it waits for ever.
  public var timeToLive: Duration?

  /// In place of a time to live, when it ends, in units of 100 ns since 1970: a copy ends with its
  /// original.
  package var expires: Int64?

  /// What its order hangs on.
  ///
  /// Of the messages with the same key, a consumer has at most one at a time, in the order of
  /// publishing. A message that is delayed holds back no other. 1 to 255 bytes, not together with a priority. Default: nil, it waits for no other.
  public var orderingKey: String?

  /// Publishing another message with this id to this channel, within
  /// ``EngineConfiguration/deduplicationWindow``, stores nothing and returns the first one's timetoken.
  ///
  /// 1 to 255 bytes. Default: nil.
  public var deduplicationID: String?

  /// Makes a message.
  public init(channel: Channel, payload: [UInt8], headers: [String: String] = [:]) {
    self.channel = channel
    self.payload = payload
    self.headers = headers
  }

  /// When receivers may have a message, by the wall clock, so that it outlives a restart.
  public struct Availability: Sendable, Hashable {
    enum Moment: Hashable {
      case after(Duration)
      case at(Date)
      case atTicks(Int64)
    }

    let moment: Moment

    /// As soon as it is published.
    public static let immediately = Availability(moment: .after(.zero))

    /// When `delay` is over, at most ``EngineConfiguration/maximumLeaseDuration``.
    public static func after(_ delay: Duration) -> Availability {
      Availability(moment: .after(delay))
    }

    /// From `date` on; at once, if that is past.
    public static func at(_ date: Date) -> Availability { Availability(moment: .at(date)) }

    /// The same in units of 100 ns since 1970, exactly.
    package static func at(ticks: Int64) -> Availability { Availability(moment: .atTicks(ticks)) }
  }
}

extension Message {
  /// Bytes that count against a channel's limit.
  var byteCount: Int { payload.count + HeaderCoding.byteCount(of: headers) }

  /// Refuses what no engine of this configuration takes; `which` names the message.
  package func check(_ configuration: EngineConfiguration, as which: String) throws(EngineError) {
    guard payload.count <= configuration.maximumPayloadByteCount else {
      throw EngineError(
        .payloadTooLarge,
        "\(which) has \(payload.count) bytes, the limit is \(configuration.maximumPayloadByteCount)",
        hint: "split it, or raise the engine's maximumPayloadByteCount")
    }
    try checkHeaders(configuration, as: which)
    for (text, what) in [(orderingKey, "ordering key"), (deduplicationID, "deduplication id")] {
      if let text, let fault = Name.fault(in: text) {
        throw EngineError(.invalidArgument, "the \(what) of \(which) \(fault)", hint: Name.rule)
      }
    }
    guard orderingKey == nil || priority == .normal else {
      throw EngineError(
        .invalidArgument, "\(which) has an ordering key and a priority",
        hint:
          "messages of one key are received in the order of publishing; leave one of the two out")
    }
    if case .after(let delay) = availability.moment,
      delay < .zero || delay > EngineConfiguration.maximumLeaseDuration
    {
      throw EngineError(
        .invalidArgument, "\(which) has a delay of \(delay)", hint: "nothing, or at most 366 days")
    }
    if let timeToLive, timeToLive <= .zero || timeToLive > EngineConfiguration.longestTimeToLive {
      throw EngineError(
        .invalidArgument, "\(which) has a time to live of \(timeToLive)",
        hint: "more than nothing, at most 100 years")
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
        hint: "carry them in the payload, or raise the engine's maximumHeaderByteCount")
    }
  }
}

/// How urgent a message is to receivers: 0 to 9, as in JMS, 4 unless said otherwise.
///
/// Of what is ready, a receiver gets the highest priority first, and the oldest first within one. The
/// log keeps the order of publishing.
public struct Priority: Sendable, Hashable, Comparable {
  /// Priority 4.
  public static let normal = Priority(stored: 4)
  /// All of them, the highest first.
  static let descending = (0...9).reversed().map(Priority.init(stored:))

  /// The number.
  public let rawValue: Int

  /// Takes a number from 0, the least urgent, to 9.
  ///
  /// - Throws: ``EngineError/Code/invalidArgument``.
  public init(_ number: Int) throws(EngineError) {
    guard (0...9).contains(number) else {
      throw EngineError(
        .invalidArgument, "there is no priority \(number)", hint: "use 0 to 9; 4 is normal")
    }
    rawValue = number
  }

  /// A priority that was checked when it was stored.
  init(stored number: Int) {
    rawValue = number
  }

  /// Whether `a` comes after `b`.
  public static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}
