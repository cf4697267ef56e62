internal import Foundation

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

/// An attempt at a message that did not end in its acknowledgement.
public struct DeliveryFailure: Sendable, Hashable, Codable {
  /// The reason of a lease that ended without an answer.
  static let leaseEnded = "its lease ended"
  /// The reason of a release that gave none.
  static let released = "released"
  /// The last ones are kept.
  static let keptCount = 16

  /// Which attempt it was: 1 is the first.
  public let attempt: Int
  /// When it was known to have failed, by the wall clock, in units of 100 ns since 1970.
  public let time: Int64
  /// What the receiver said, or what happened.
  public let reason: String

  init(attempt: Int, time: Int64, reason: String) {
    self.attempt = attempt
    self.time = time
    self.reason = reason
  }

  /// The text of a list of failures with this one as its last.
  func appended(to list: String?) -> String? {
    Self.text(of: (Self.list(list) + [self]).suffix(Self.keptCount)) ?? list
  }

  /// The text of a list; nil for none.
  static func text(of failures: [DeliveryFailure]) -> String? {
    if failures.isEmpty { return nil }
    let encoder = JSONEncoder()
    // Equal histories are equal bytes.
    encoder.outputFormatting = .sortedKeys
    return (try? encoder.encode(failures)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// What a text of ``appended(to:)`` says; nothing, if it is none.
  static func list(_ text: String?) -> [DeliveryFailure] {
    guard let text else { return [] }
    return (try? JSONDecoder().decode([DeliveryFailure].self, from: Data(text.utf8))) ?? []
  }
}

/// A message that a consumer does not get any more, until it is given back by
/// ``MessagingEngine/redrive(_:of:for:)`` or removed.
public struct DeadLetter: Sendable, Hashable {
  /// The message's place in the log.
  public let timetoken: Timetoken
  /// Where it was published.
  public let channel: Channel
  /// Whose dead letter it is; other consumers get the message as ever.
  public let consumer: Consumer
  /// The bytes that were published.
  public let payload: [UInt8]
  /// The headers that were published.
  public let headers: [String: String]
  /// How often it was delivered.
  public let attemptCount: Int
  /// Why it died: what the last receiver said, or what happened.
  public let reason: String
  /// When it died, by the wall clock, in units of 100 ns since 1970.
  public let died: Int64
  /// The attempts that failed, the last 16 of them.
  public let failures: [DeliveryFailure]
}
