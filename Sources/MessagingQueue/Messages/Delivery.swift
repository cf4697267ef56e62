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

  /// How urgent it is.
  public let priority: Priority

  /// The key whose messages come one after the other.
  public let orderingKey: String?

  /// From when on no receiver gets it, by the wall clock, in units of 100 ns since 1970; nil for never.
  public let expires: Int64?

  /// How often it has been delivered, this time included: 1 at first.
  public let attempt: Int
}
