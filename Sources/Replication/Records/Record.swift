/// What a record says, opened and put together from its parts.
package struct Record: Sendable, Hashable {
  /// When it was written, on its author's wall clock: units of 100 ns since 1970, like a timetoken.
  package var time: Int64
  package var body: Body

  package init(time: Int64, _ body: Body) {
    self.time = time
    self.body = body
  }

  /// The kinds of records.
  package enum Body: Sendable, Hashable {
    /// What one transaction has published.
    case commit([PublishedMessage])
    /// What a lease came to.
    case settlement(Settlement)
    /// A claim to lease, which counts if `predecessor` is still the owner's epoch.
    case epoch(EpochID, predecessor: EpochID?, MemberID)
    /// The owner lives.
    case heartbeat(EpochID, beat: UInt64)
    /// How far a member has come: never undone, with the digest there, and the keys that it has and needs.
    case report(MemberID, safe: UInt64, RecordDigest, newestKey: UInt32, oldestKey: UInt32)
    /// A member joins, or starts: the log keeps for it what follows its safe position.
    ///
    /// A member that has no database of the log yet has none, and takes a backup that has this record.
    case join(MemberID, safe: UInt64?)
    /// A member leaves, or the owner expels it.
    case leave(MemberID)
    /// The log up to a position is no longer needed.
    case trim(through: UInt64)
    /// A change of the tables, run with the record's time: the message database encodes it.
    case operation([UInt8])
    /// A changeset of the tables of a server: it takes effect if the rows are as it expects.
    case rows([UInt8])
    /// Records are sealed under this key from here on, if every member has it.
    case keySwitch(UInt32)
    /// Records under keys before this one are skipped from here on, if no member needs them.
    case keyDrop(UInt32)
    /// A member undid everything after `from`, where it had given out timetokens up to `to`.
    case repair(from: Int64, to: Int64)
  }
}

/// A message as the log has it.
package struct PublishedMessage: Sendable, Hashable {
  package var channel: String
  package var deduplicationID: String?
  package var orderingKey: String?
  /// Priority, due time, time to live, headers and payload, as the message database encodes them.
  package var content: [UInt8]

  package init(
    channel: String, deduplicationID: String? = nil, orderingKey: String? = nil, content: [UInt8]
  ) {
    self.channel = channel
    self.deduplicationID = deduplicationID
    self.orderingKey = orderingKey
    self.content = content
  }
}

/// What a lease came to.
package struct Settlement: Sendable, Hashable {
  /// The result for the consumer.
  package enum Outcome: Sendable, Hashable {
    case acknowledged
    /// The message goes back; a delivery that counts adds a failure.
    case released(countsAttempt: Bool, reason: String)
    /// The message becomes a dead letter.
    case rejected(reason: String)
    /// The owner has ended the lease, as no answer came: a failure.
    case leaseEnded

    package var kind: Kind {
      switch self {
      case .acknowledged: .acknowledged
      case .released: .released
      case .rejected: .rejected
      case .leaseEnded: .leaseEnded
      }
    }
  }

  /// A result without its reason.
  package enum Kind: UInt8, Sendable, Hashable {
    case acknowledged, released, rejected, leaseEnded
  }

  package var consumer: String
  package var message: MessageOrigin
  package var lease: LeaseID
  /// The epoch in which the lease was given.
  package var epoch: EpochID
  package var outcome: Outcome
  /// Of a release: no owner leases the message before this time of the wall clock, in units of 100 ns since 1970.
  package var due: Int64?

  package init(
    consumer: String, message: MessageOrigin, lease: LeaseID, epoch: EpochID, outcome: Outcome,
    due: Int64? = nil
  ) {
    self.consumer = consumer
    self.message = message
    self.lease = lease
    self.epoch = epoch
    self.outcome = outcome
    self.due = due
  }
}
