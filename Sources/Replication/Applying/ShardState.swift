/// What every node knows of the log itself at one position: a function of the records up to there, and of nothing
/// else.
///
/// The rows of messages, consumers and deliveries are ``ReplicatedTables``. A database stores both, and the
/// position, in the transaction of each record.
package struct ShardState: Sendable, Equatable {
  /// The values that are replaced as a whole.
  package struct Values: Sendable, Equatable {
    package init() {}

    /// The sequence of the last record.
    package var position: UInt64 = 0
    /// The digest of all records, and of what they came to.
    package var digest = RecordDigest.zero
    /// The greatest timetoken given out.
    package var highWater: Int64 = 0
    /// The sealed time of the owner's last heartbeat, never less than before.
    package var ownerTime: Int64?
    /// The epoch of the owner.
    package var epoch: EpochRecord?
    /// The log up to here is no longer needed.
    package var trimmedThrough: UInt64 = 0
    /// The number of the key under which new records are sealed.
    package var key: UInt32 = 1
    /// The greatest key that a switch has named; it seals once all members have said that they have it.
    package var requestedKey: UInt32 = 1
    /// Records under keys before this one are skipped.
    package var oldestKey: UInt32 = 1
    /// Cursors in this range begin again at its start: ``Record/Body/repair(from:to:)``.
    package var repaired: [TimetokenRange] = []
  }

  /// The epoch that counts.
  package struct EpochRecord: Sendable, Equatable {
    package let epoch: EpochID
    package let owner: MemberID

    package init(epoch: EpochID, owner: MemberID) {
      self.epoch = epoch
      self.owner = owner
    }
  }

  /// The timetokens after `from`, up to `to`.
  package struct TimetokenRange: Sendable, Equatable {
    package let from: Int64
    package let to: Int64

    package init(from: Int64, to: Int64) {
      self.from = from
      self.to = to
    }

    /// Where a reader continues that has seen everything up to `cursor`.
    ///
    /// Within a range, its timetokens were given to other messages since. Events that are not stored have places up to
    /// the next multiple of 100 after it.
    package func readingPlace(_ cursor: Int64) -> Int64 {
      cursor > from && cursor / 100 * 100 <= to ? from : cursor
    }
  }

  /// What is known of an author.
  package struct AuthorState: Sendable, Equatable {
    /// The number of its last record that was applied.
    package var number: UInt64 = 0
    /// How many parts of a record have come whose last part has not.
    package var partCount = 0

    package init(number: UInt64 = 0, partCount: Int = 0) {
      self.number = number
      self.partCount = partCount
    }
  }

  /// A node that applies the log.
  package struct Member: Sendable, Equatable {
    /// The position of its join.
    ///
    /// A backup that it joins with has this record where no broker forgets it.
    package var since: UInt64
    /// It never undoes records up to here.
    package var safe: UInt64
    /// The newest key that it has.
    package var newestKey: UInt32
    /// The oldest key that its outbox or its tail needs.
    package var oldestKey: UInt32

    package init(since: UInt64, safe: UInt64, newestKey: UInt32, oldestKey: UInt32) {
      self.since = since
      self.safe = safe
      self.newestKey = newestKey
      self.oldestKey = oldestKey
    }
  }

  package internal(set) var values = Values()
  package internal(set) var authors: [AuthorID: AuthorState] = [:]
  package internal(set) var members: [MemberID: Member] = [:]

  package init() {}

  /// The state as a database has stored it.
  package init(_ values: Values, authors: [AuthorID: AuthorState], members: [MemberID: Member]) {
    self.values = values
    self.authors = authors
    self.members = members
  }

  package var position: UInt64 { values.position }
  package var digest: RecordDigest { values.digest }
  package var epoch: EpochRecord? { values.epoch }

  /// The number of an author's last record that was applied; 0 for an unknown author.
  package func lastNumber(of author: AuthorID) -> UInt64 { authors[author]?.number ?? 0 }

  /// Where a reader continues that has seen everything up to `cursor`.
  package func readingPlace(_ cursor: Int64) -> Int64 {
    values.repaired.reduce(cursor) { $1.readingPlace($0) }
  }
}

extension ShardState {
  /// What a record has changed, to undo it.
  package struct Change: Sendable {
    package let values: Values
    package internal(set) var author: (id: AuthorID, state: AuthorState?)?
    package internal(set) var member: (id: MemberID, state: Member?)?

    init(before state: ShardState) { values = state.values }

    init(values: Values) { self.values = values }

    mutating func willChange(_ author: AuthorID, in state: ShardState) {
      self.author = (author, state.authors[author])
    }

    mutating func willChange(_ member: MemberID, in state: ShardState) {
      self.member = (member, state.members[member])
    }
  }

  mutating func undo(_ change: Change) {
    values = change.values
    if let (id, state) = change.author { authors[id] = state }
    if let (id, state) = change.member { members[id] = state }
  }
}
