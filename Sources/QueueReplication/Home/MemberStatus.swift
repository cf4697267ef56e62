internal import Foundation
internal import GRDB
package import MessagingQueue
package import Replication

/// What a member's database says of its shard, for operators.
package struct MemberStatus: Sendable {
  package struct Member: Sendable {
    package let id: MemberID
    /// It never undoes records up to here.
    package let safe: UInt64
  }

  package let member: MemberID
  /// The last record that was applied.
  package let position: UInt64
  /// Who leases now, or did last.
  package let owner: MemberID?
  /// By their ids.
  package let members: [Member]
  /// Records that are not in the log, or not read back.
  package let outboxCount: Int
  /// The number of the key under which members seal what they write.
  package let writingKey: UInt32

  /// Reads it, while another process can replicate the home.
  ///
  /// - Throws: ``ReplicationError`` unless the home is a member; the errors of the engine.
  package static func read(_ engine: MessagingEngine) async throws -> MemberStatus {
    try await engine.read { db in
      guard let member = try ReplicationSchema.member(db) else { throw ReplicationError.noMember }
      let applier = try StoredState.load(db, now: .zero)
      return MemberStatus(
        member: member, position: applier.state.position, owner: applier.state.epoch?.owner,
        members: applier.state.members.sorted { $0.key < $1.key }
          .map { Member(id: $0.key, safe: $0.value.safe) },
        outboxCount: Int(try db.number("SELECT count(*) FROM replication_outbox") ?? 0),
        writingKey: applier.state.values.key)
    }
  }

  /// The digests of the records that could still be undone, by their positions.
  package static func places(_ engine: MessagingEngine) async throws -> [UInt64: RecordDigest] {
    try await engine.read { db in
      guard try ReplicationSchema.isMade(db) else { throw ReplicationError.noMember }
      let rows = try Row.fetchCursor(db, sql: "SELECT position, record FROM replication_tail")
      var places: [UInt64: RecordDigest] = [:]
      while let row = try rows.next() {
        places[UInt64(row[0] as Int64)] =
          try SealedRecord(reading: [UInt8](row[1] as Data)).digest
      }
      return places
    }
  }
}
