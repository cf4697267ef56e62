import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import Testing

/// Records that no honest node writes.
@Suite struct HostileRecordTests {
  @Test func `the number 0 under a process's name stops no node`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    for author in Set(shard.log.records.map(\.name.author)) {
      try shard.log.append([SealedRecord(RecordNumber(author, 0), key: 1, sealed: [1, 2, 3])])
    }
    try await node.engine.publish(Message("two"))
    #expect(try await node.texts(of: .orders) == ["one", "two"])
    await node.stop()
  }

  @Test func `a member that claims records that are not there is not believed`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    try await node.engine.publish(Message("one"))
    let (author, known, unknown) = (AuthorID(7), MemberID(1), MemberID(2))
    let report = LogRecord.Body.report(
      known, safe: .max, .zero, newestKey: 1,
      oldestKey: 1)
    let joins: [LogRecord.Body] = [.join(unknown, safe: .max), .join(known, safe: 1 << 40)]
    try shard.append((report, RecordNumber(author, 1)))
    try shard.append((joins[0], RecordNumber(author, 2)), (joins[1], RecordNumber(author, 3)))
    try await node.engine.publish(Message("two"))
    let members = try await node.pool.read { db in
      try Row.fetchAll(db, sql: "SELECT member, safe FROM replication_member")
        .map { ($0[0] as Data, $0[1] as Int64) }
    }
    #expect(members.map(\.0) == [Data(known.bytes)])
    #expect(members.allSatisfy { $0.1 <= Int64(shard.log.count) })
    await node.stop()
  }
}
