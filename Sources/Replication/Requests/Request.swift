/// What a member asks the owner of the leases.
package struct Request: Sendable, Hashable {
  /// The most settlements, leases or messages of one request.
  package static let mostElements = 1000

  /// The epoch whose owner is asked.
  package var epoch: EpochID
  /// The newest heartbeat of that epoch that the sender has applied; 0 before the first one.
  package var beat: UInt64
  package var body: Body

  package init(epoch: EpochID, beat: UInt64, _ body: Body) {
    self.epoch = epoch
    self.beat = beat
    self.body = body
  }

  /// The kinds of requests.
  package enum Body: Sendable, Hashable {
    /// Lease up to so many messages of a channel to a consumer.
    case receive(channel: String, consumer: String, mostMessages: UInt32, leaseMilliseconds: UInt64)
    /// Settle leases.
    case settle([LeaseSettlement])
    /// Let leases end later: at this span from now.
    case extend([LeaseID], leaseMilliseconds: UInt64)
  }
}

/// What a worker has come to with a message that was leased to it.
package struct LeaseSettlement: Sendable, Hashable {
  package var lease: LeaseID
  /// How long the owner holds the message back after a release.
  package var delayMilliseconds: UInt64
  /// Not `leaseEnded`, which only the owner can say.
  package var outcome: Settlement.Outcome

  package init(lease: LeaseID, delayMilliseconds: UInt64 = 0, outcome: Settlement.Outcome) {
    self.lease = lease
    self.delayMilliseconds = delayMilliseconds
    self.outcome = outcome
  }
}

/// What the owner replies.
package enum Reply: Sendable, Hashable {
  /// The leased messages, the oldest first.
  case leased([LeasedMessage])
  /// The result of each settlement, in the order of the request.
  case settled([SettlementResult])
  /// Whether each lease ends later now, in the order of the request.
  case extended([Bool])
  /// The member does not own the leases; it names the owner if it knows one.
  case notOwner(MemberID?)
  /// The request has no effect.
  case refused(reason: String)

  /// Whether this can be the reply to a request: its kind, and the number of results.
  package func answers(_ request: Request) -> Bool {
    switch (self, request.body) {
    case (.notOwner, _), (.refused, _): true
    case (.leased(let messages), .receive(_, _, let mostMessages, _)):
      messages.count <= Int(mostMessages)
    case (.settled(let results), .settle(let settlements)): results.count == settlements.count
    case (.extended(let results), .extend(let leases, _)): results.count == leases.count
    case (.leased, _), (.settled, _), (.extended, _): false
    }
  }
}

/// A message that a member's worker has got.
package struct LeasedMessage: Sendable, Hashable {
  package var message: MessageOrigin
  /// Its place at the owner, which the member must have applied before it looks for the message.
  package var timetoken: Int64
  package var lease: LeaseID
  /// Which delivery this is, from 1.
  package var attempt: UInt32

  package init(message: MessageOrigin, timetoken: Int64, lease: LeaseID, attempt: UInt32) {
    self.message = message
    self.timetoken = timetoken
    self.lease = lease
    self.attempt = attempt
  }
}

/// What a settlement has come to.
package enum SettlementResult: UInt8, Sendable, Hashable, CaseIterable {
  /// It counts.
  case done = 0
  /// It is in the log and does not count.
  case lost = 1
  /// The owner cannot tell: it can still count.
  case unknown = 2
  /// It counts, and has made the message a dead letter.
  case dead = 3
}

/// Why a request or a reply cannot be written or read.
package struct RequestError: Error, Sendable, Hashable {
  /// What is wrong.
  package let reason: String

  static let tooManyElements = RequestError(
    reason: "a request between members has more than 1,000 elements")
  static let textTooLong = RequestError(
    reason: "a text of a request between members has more than 65,535 bytes")
  static let ownersOutcome = RequestError(
    reason: "a request between members ends a lease, which only the owner can do")
  static let tooLarge = RequestError(reason: "a request between members has more than 512 KiB")
  static let unreadable = RequestError(reason: "a request between members cannot be read")
  static let otherRecipient = RequestError(
    reason: "a request between members is for another member")
  static let otherReply = RequestError(
    reason: "a reply between members answers another request, or comes from another member")
}
