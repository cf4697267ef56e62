/// 128 random bits that name something of one kind.
package struct Identifier<Kind>: Sendable, Hashable, Comparable {
  package static var byteCount: Int { 16 }

  package let value: UInt128

  package init(_ value: UInt128) { self.value = value }

  /// Draws one.
  package init(using random: inout some RandomNumberGenerator) {
    value = UInt128(random.next()) << 64 | UInt128(random.next())
  }

  package static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

/// Who numbers records: one lane of one process, from its start to its end.
package enum Author {}
/// A database that applies the log.
package enum Replica {}
/// The time in which one process leases.
package enum Epoch {}
/// The secret of a lease.
package enum Lease {}
/// A home that is replicated.
package enum Shard {}
/// A request between members, and its reply.
package enum Exchange {}

package typealias AuthorID = Identifier<Author>
package typealias MemberID = Identifier<Replica>
package typealias EpochID = Identifier<Epoch>
package typealias LeaseID = Identifier<Lease>
package typealias ShardID = Identifier<Shard>
package typealias RequestID = Identifier<Exchange>

/// What a record is known by: its author, and its place among that author's records, from 1.
package struct RecordNumber: Sendable, Hashable, Comparable {
  package let author: AuthorID
  package let number: UInt64

  package init(_ author: AuthorID, _ number: UInt64) {
    self.author = author
    self.number = number
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.author, left.number) < (right.author, right.number)
  }
}

/// What a message is known by in every history of the log: its record, and its place in it, from 0.
///
/// A timetoken does not do: after the brokers have forgotten the end of the log, another message can get it.
package struct MessageOrigin: Sendable, Hashable, Comparable {
  package let record: RecordNumber
  package let index: UInt32

  package init(_ record: RecordNumber, _ index: UInt32) {
    self.record = record
    self.index = index
  }

  package static func < (left: Self, right: Self) -> Bool {
    (left.record, left.index) < (right.record, right.index)
  }
}
