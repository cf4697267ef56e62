public import Foundation

/// A message as a receiver gets it, leased to that receiver until it is settled or the lease ends.
public struct Delivery: Sendable, Hashable {
  /// The token that settles this delivery.
  public let token: LeaseToken

  /// The channel of the message.
  public let channel: Channel

  /// The bytes that were published.
  public let payload: [UInt8]

  /// The headers that were published.
  public let headers: [String: String]

  /// The message's priority.
  public let priority: Priority

  /// The message's ordering key; messages with the same key come one after the other.
  public let orderingKey: String?

  /// ``expirationDate``, exactly: in units of 100 ns since 1970.
  package let expirationTicks: Int64?

  /// How often the message has been delivered, this time included: 1 for the first.
  public let attempt: Int

  /// How often its consumer gets the message before it becomes a dead letter; nil for no limit.
  public let maximumAttempts: Int?

  /// Whether the message becomes a dead letter if this attempt fails.
  public var isLastAttempt: Bool { maximumAttempts.map { attempt >= $0 } ?? false }

  /// The message's place in the log.
  public var timetoken: Timetoken { token.timetoken }

  /// A delivery that no engine has made, for tests of what receives it.
  package init(
    of message: Message, at timetoken: Timetoken, attempt: Int, maximumAttempts: Int?
  ) {
    let secret = [UInt8](repeating: 0, count: LeaseToken.secretByteCount)
    self.init(
      token: LeaseToken(consumerID: 1, timetoken: timetoken, secret: secret),
      channel: message.channel, payload: message.payload, headers: message.headers,
      priority: message.priority, orderingKey: message.orderingKey,
      expirationTicks: message.expirationTicks, attempt: attempt, maximumAttempts: maximumAttempts)
  }

  init(
    token: LeaseToken, channel: Channel, payload: [UInt8], headers: [String: String],
    priority: Priority, orderingKey: String?, expirationTicks: Int64?, attempt: Int,
    maximumAttempts: Int?
  ) {
    self.token = token
    self.channel = channel
    self.payload = payload
    self.headers = headers
    self.priority = priority
    self.orderingKey = orderingKey
    self.expirationTicks = expirationTicks
    self.attempt = attempt
    self.maximumAttempts = maximumAttempts
  }

  /// When receivers stop getting the message, by the wall clock; nil for never.
  public var expirationDate: Date? { expirationTicks.map(WallTime.date) }
}

/// A delivery that ended without an acknowledgement.
public struct DeliveryFailure: Sendable, Hashable, Codable {
  /// The reason for a lease that ended without an answer.
  static let leaseEnded = "its lease ended"
  /// The reason for a release that gave none.
  static let released = "released"
  /// How many failures are kept, the latest ones.
  static let keptCount = 16

  /// The number of the attempt: 1 is the first.
  public let attempt: Int
  /// ``date``, exactly: in units of 100 ns since 1970.
  package let ticks: Int64
  /// The reason that the receiver gave, or the event that ended the delivery.
  public let reason: String

  /// When the failure was noticed, by the wall clock.
  public var date: Date { WallTime.date(ticks) }

  private enum CodingKeys: String, CodingKey {
    case attempt, reason
    case ticks = "time"
  }

  init(attempt: Int, ticks: Int64, reason: String) {
    self.attempt = attempt
    self.ticks = ticks
    self.reason = reason
  }

  /// The stored text of a list of failures, with this one appended.
  func appended(to list: String?) -> String? {
    Self.text(of: (Self.list(list) + [self]).suffix(Self.keptCount)) ?? list
  }

  /// The stored text of a list; nil for an empty list.
  static func text(of failures: [DeliveryFailure]) -> String? {
    if failures.isEmpty { return nil }
    let encoder = JSONEncoder()
    // Sorted keys, so that equal histories are equal bytes.
    encoder.outputFormatting = .sortedKeys
    return (try? encoder.encode(failures)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Reads a text of ``appended(to:)``; an invalid text gives an empty list.
  static func list(_ text: String?) -> [DeliveryFailure] {
    guard let text else { return [] }
    return (try? JSONDecoder().decode([DeliveryFailure].self, from: Data(text.utf8))) ?? []
  }
}

/// A message that its consumer no longer gets.
///
/// ``MessagingEngine/redrive(_:of:for:)`` returns it to the consumer;
/// ``MessagingEngine/removeDeadLetters(_:of:for:)`` removes it.
public struct DeadLetter: Sendable, Hashable {
  /// The message's place in the log.
  public let timetoken: Timetoken
  /// The channel of the message.
  public let channel: Channel
  /// The consumer that has this dead letter; other consumers still get the message.
  public let consumer: Consumer
  /// The bytes that were published.
  public let payload: [UInt8]
  /// The headers that were published.
  public let headers: [String: String]
  /// How often it was delivered.
  public let attemptCount: Int
  /// Why the message became a dead letter: what the last receiver said, or what happened.
  public let reason: String
  /// ``deadLetteredDate``, exactly: in units of 100 ns since 1970.
  package let deadLetteredTicks: Int64
  /// The failed attempts, the last 16 of them.
  public let failures: [DeliveryFailure]

  /// When the message became a dead letter, by the wall clock.
  public var deadLetteredDate: Date { WallTime.date(deadLetteredTicks) }
}
