internal import GRDB
internal import MessagingQueue
internal import Replication

/// Gives a fuzzer access to what a node reads of opened records.
@_spi(Testing)
public enum QueueReplicationProbe {
  /// Reads a change of the queue and writes it again; nil if it is refused.
  public static func operationAgain(_ bytes: [UInt8]) -> [UInt8]? {
    var origins: [MessageOrigin] = []
    let operation = try? QueueOperation(decoding: bytes) { origin in
      origins.append(origin)
      return Timetoken(unchecked: Int64(origins.count))
    }
    return try? operation?.encoded { origins[Int($0.rawValue) - 1] }
  }

  /// Reads the content of a message and writes it again; nil if it is refused.
  public static func contentAgain(_ bytes: [UInt8]) -> [UInt8]? {
    try? Message(channel: "c", deduplicationID: nil, orderingKey: nil, content: bytes)
      .content(at: 0)
  }

  /// A database whose rows come as changes of another node.
  public final class Rows {
    private let queue: DatabaseQueue
    /// The changes of some rows.
    public let changes: [UInt8]

    /// Makes a database in memory with the tables `note` and `other`.
    public init() throws {
      let recording = try Self.database()
      changes = try recording.write { db in
        let recorder = try RowRecorder(db, tables: ["note"])
        try db.execute(
          sql: """
            INSERT INTO note VALUES (3, 'three', 3.5, x'33');
            UPDATE note SET text = 'zwei' WHERE id = 2;
            DELETE FROM note WHERE id = 1;
            """)
        return try recorder.finish().bytes
      }
      queue = try Self.database()
    }

    private static func database() throws -> DatabaseQueue {
      let queue = try DatabaseQueue()
      try queue.write { db in
        try db.execute(
          sql: """
            CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL, number REAL, bytes BLOB);
            CREATE TABLE other (id INTEGER PRIMARY KEY, text TEXT);
            INSERT INTO note VALUES (1, 'one', NULL, NULL), (2, 'two', NULL, NULL);
            INSERT INTO other VALUES (1, 'one');
            """)
      }
      return queue
    }

    /// Changes rows of `note`, and undoes that.
    ///
    /// - Returns: the rows in between, those of `other` first; nil if the changes are refused.
    public func rows(after changes: [UInt8]) -> [String]? {
      var rows: [String]?
      try? queue.inTransaction { db in
        let changes = RowChanges(changes)
        if (try? changes.apply(to: db, in: ["note"])) != nil {
          _ = try? changes.inverted()
          rows = try ["SELECT * FROM other", "SELECT * FROM note"]
            .flatMap { try Row.fetchAll(db, sql: $0).map(\.description) }
        }
        return .rollback
      }
      return rows
    }
  }
}
