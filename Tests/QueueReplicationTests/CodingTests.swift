import Foundation
import GRDB
import MessagingQueue
@_spi(Testing) import QueueReplication
@_spi(Testing) import Replication
import ReplicationFixture
import Testing

@Suite struct CodingTests {
  /// The bytes of a text and of numbers, as records have them.
  private static func text(_ text: String) -> [UInt8] {
    [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)] + text.utf8
  }

  private static func number(_ number: UInt64) -> [UInt8] {
    (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  private static let origin = [UInt8](repeating: 7, count: 28)
  private static let c = text("c")
  private static let count: [UInt8] = [0, 0, 1, 0]

  /// One of each kind, with what is optional and without.
  static let operations: [[UInt8]] = [
    [1] + c + text("w") + [0], [1] + c + text("w") + [1, 0, 0, 0, 3],
    [2] + c + text("w"),
    [3] + c + text("w") + [0], [3] + c + text("w") + [1, 0, 0, 0, 1] + origin,
    [4] + c + text("w") + [0], [4] + c + text("w") + [1, 0, 0, 0, 2] + origin + origin,
    [5] + c + [1, 0, 0, 0, 0], [5] + c + [0, 1, 1] + number(5) + [1] + number(6) + [1] + number(7),
    [6] + c + [0, 0] + count, [6] + c + [1] + number(9) + [1] + number(10) + count,
    [7] + c + [1, 0, 0, 0, 0], [7] + c + [1, 0, 0, 0, 1] + origin,
    [8] + c + [0] + count, [8] + c + [1] + number(9) + count,
    [9] + text("a"),
    [10] + text("a") + number(9) + [0] + count + [0, 0, 0, 0],
    [10] + text("a") + number(9) + [1] + number(8) + count + [0, 0, 0, 2] + number(1) + number(2),
    [11] + text("a") + number(9) + [0, 0, 0, 1] + number(1),
    [12] + number(100),
    [13] + c + text("w"),
  ]

  @Test(arguments: operations)
  func `a change of the queue is read as it was written`(bytes: [UInt8]) {
    #expect(QueueReplicationProbe.operationAgain(bytes) == bytes)
    for end in 0..<bytes.count {
      #expect(QueueReplicationProbe.operationAgain(Array(bytes[..<end])) == nil)
    }
    #expect(QueueReplicationProbe.operationAgain(bytes + [0]) == nil)
  }

  @Test(arguments: [
    [0], [14] + c, [1] + text("") + text("w") + [0], [1] + c + text("") + [0],
    [1] + c + text("w") + [2], [7] + c + [0], [7] + c + [1, 255, 255, 255, 255] + origin,
    [12] + number(1 << 63), [8] + c + [1] + number(.max) + count,
    [11] + text("a") + number(9) + [0, 0, 0, 1] + number(.max),
    [5] + c + [1, 0, 1] + number(1 << 63) + [0, 0],
  ])
  func `a change of the queue that no engine would write is refused`(bytes: [UInt8]) {
    #expect(QueueReplicationProbe.operationAgain(bytes) == nil)
  }

  @Test func `an operation that is refused does not stop a node`() async throws {
    let shard = try TestShard()
    let node = try await TestNode(shard, member: 1)
    let author = AuthorID(9)
    try shard.append(
      (.operation([1] + Self.text("") + Self.text("w") + [0]), RecordNumber(author, 1)),
      (.operation([99]), RecordNumber(author, 2)), (.rows([1, 2, 3]), RecordNumber(author, 3)))
    try await node.engine.publish(Message("one"))
    #expect(try await node.texts(of: .orders) == ["one"])
    await node.stop()
  }

  @Test func `the content of a message is read as it was written`() throws {
    var message = Message(
      channel: .orders, payload: [1, 2, 3], headers: ["a": "b", "c": ""], priority: try Priority(9),
      availability: .after(.seconds(2)), timeToLive: .seconds(3))
    for _ in 0..<2 {
      let bytes = message.content(at: 1_000_000_000)
      #expect(QueueReplicationProbe.contentAgain(bytes) == bytes)
      for end in 0..<bytes.count - message.payload.count {
        #expect(QueueReplicationProbe.contentAgain(Array(bytes[..<end])) == nil)
      }
      message = Message(channel: .orders, payload: [])
    }
    #expect(QueueReplicationProbe.contentAgain([10, 0, 0, 0, 0, 0, 0]) == nil)
    #expect(QueueReplicationProbe.contentAgain([4, 2, 0, 0, 0, 0, 0]) == nil)
    #expect(QueueReplicationProbe.contentAgain([4, 0, 0, 255, 255, 255, 255]) == nil)
    #expect(
      QueueReplicationProbe.contentAgain([4, 1] + Self.number(.max) + [0, 0, 0, 0, 0]) == nil)
  }

  @Test func `what a member knows of the log is read as it was stored`() throws {
    var values = ShardState.Values()
    values.position = 7
    values.ownerTime = -1
    values.epoch = ShardState.EpochRecord(epoch: EpochID(1), owner: MemberID(2))
    values.repaired = [ShardState.TimetokenRange(from: 1, to: 2)]
    let known = ShardState(
      values, authors: [AuthorID(3): ShardState.AuthorState(number: 4, partCount: 5)],
      members: [:])
    for bytes in [ShardState.Values().bytes, known.values.bytes] {
      #expect(ReplicationProbe.encodedAgain(bytes, as: .shardValues) == bytes)
      for end in 0..<bytes.count {
        #expect(ReplicationProbe.encodedAgain(Array(bytes[..<end]), as: .shardValues) == nil)
      }
      #expect(ReplicationProbe.encodedAgain(bytes + [0], as: .shardValues) == nil)
    }
    let place = RecordPlace(
      sequence: 1, storedAt: -2, name: RecordNumber(AuthorID(3), 4), key: 5, digest: .zero
    ).bytes
    #expect(ReplicationProbe.encodedAgain(place, as: .recordPlace) == place)
    #expect(ReplicationProbe.encodedAgain(place + [0], as: .recordPlace) == nil)
    #expect(ReplicationProbe.encodedAgain(Array(place.dropLast()), as: .recordPlace) == nil)
  }

  // MARK: Rows

  private static func database(_ columns: String = "id INTEGER PRIMARY KEY, text TEXT") throws
    -> DatabaseQueue
  {
    let queue = try DatabaseQueue()
    try queue.write { try $0.execute(sql: "CREATE TABLE note (\(columns))") }
    return queue
  }

  private static func inserted() throws -> RowChanges {
    try database().write { db in
      let recorder = try RowRecorder(db, tables: ["note"])
      try db.execute(sql: "INSERT INTO note VALUES (1, 'one')")
      return try recorder.finish()
    }
  }

  @Test func `changed rows apply once, and are undone`() throws {
    let changes = try Self.inserted()
    try Self.database().write { db in
      try changes.apply(to: db, in: ["note"])
      #expect(try String.fetchAll(db, sql: "SELECT text FROM note") == ["one"])
      #expect(throws: RowChanges.Conflict.self) { try changes.apply(to: db, in: ["note"]) }
      try changes.inverted().apply(to: db, in: ["note"])
      #expect(try String.fetchAll(db, sql: "SELECT text FROM note") == [])
    }
  }

  @Test(arguments: [
    "id INTEGER PRIMARY KEY", "id INTEGER PRIMARY KEY, text TEXT, more TEXT",
    "id INTEGER, text TEXT PRIMARY KEY",
  ])
  func `rows of a table that is another one here are refused`(columns: String) throws {
    let changes = try Self.inserted()
    for database in [try Self.database(columns), try DatabaseQueue()] {
      let error = try database.write { db in
        #expect(throws: EngineError.self) { try changes.apply(to: db, in: ["note"]) }
      }
      #expect(error?.code == .damaged)
    }
  }

  @Test func `rows of a table that is not allowed, and other bytes, are refused`() throws {
    let changes = try Self.inserted()
    let rows = try QueueReplicationProbe.Rows()
    #expect(rows.rows(after: rows.changes)?.count == 3)
    try Self.database().write { db in
      #expect(throws: EngineError.self) { try changes.apply(to: db, in: ["other"]) }
      for bytes: [UInt8] in [[0], [84], [84, 255, 255], Array("T\u{2}".utf8) + [1, 0]] {
        #expect(throws: (any Error).self) { try RowChanges(bytes).apply(to: db, in: ["note"]) }
        #expect(throws: (any Error).self) { _ = try RowChanges(bytes).inverted() }
      }
      for end in 1..<changes.bytes.count {
        let cut = RowChanges(Array(changes.bytes[..<end]))
        _ = try? cut.apply(to: db, in: ["note"])
      }
    }
    // No change of the bytes crashes, or reaches another table.
    for index in rows.changes.indices {
      for bit in 0..<8 {
        var bytes = rows.changes
        bytes[index] ^= 1 << bit
        guard let found = rows.rows(after: bytes) else { continue }
        #expect(found.first?.contains("one") == true)
      }
    }
  }
}
