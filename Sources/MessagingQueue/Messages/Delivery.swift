/// A message as a receiver gets it, leased to that receiver until it is settled or the lease ends.
public struct Delivery: Sendable, Hashable {
  /// What settles this delivery.
  public let token: LeaseToken

  /// The message's place in the log.
  public let timetoken: Timetoken

  /// Where it was published.
  public let channel: Channel

  /// The bytes that were published.
  public let payload: [UInt8]

  /// The headers that were published.
  public let headers: [String: String]

  /// The key whose messages come one after the other.
  public let orderingKey: String?

  /// How often it has been delivered, this time included: 1 at first.
  public let attempt: Int
}
