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

    /// When `delay` is over, at most ``EngineConfiguration/longestHold``.
    public static func after(_ delay: Duration) -> Availability {
      Availability(moment: .after(delay))
    }

    /// From `date` on; at once, if that is past.
    public static func at(_ date: Date) -> Availability { Availability(moment: .at(date)) }

    /// The same in units of 100 ns since 1970, exactly.
    package static func at(ticks: Int64) -> Availability { Availability(moment: .atTicks(ticks)) }
  }
}
