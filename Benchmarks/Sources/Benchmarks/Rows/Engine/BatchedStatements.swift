import SystemPackage

/// The engine's statements for receiving and acknowledging a batch, on plain SQLite without an
/// engine.
final class BatchedStatements {
  private let connection: SQLiteConnection
  private let batchSize: Int
  private var next: Int64 = 1

  /// Creates a database with `count` messages.
  init(_ path: FilePath, count: Int, batchSize: Int) throws {
    self.batchSize = batchSize
    connection = try SQLiteConnection(path, isSealed: false)
    for sql in ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF"] + Self.schema {
      try connection.execute(sql)
    }
    let fill = Pass(
      statements: [
        "INSERT INTO message (timetoken, channel_id, priority, payload) VALUES (:n, 1, 4, :payload)"
      ], count: count, countPerTransaction: 1000)
    _ = try connection.run(fill, countingFrom: 1)
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try connection.execute("PRAGMA synchronous = FULL")
  }

  /// Runs a transaction that leases a batch, and one that acknowledges it.
  func receiveAndAcknowledge() throws {
    try run(Self.beginning)
    try run([
      "SELECT timetoken, payload FROM message WHERE channel_id = 1 AND timetoken > :n - 1 LIMIT \(batchSize)"
    ])
    try run(Self.lease, count: batchSize)
    try run(["INSERT OR REPLACE INTO position VALUES (1, 4, :n + \(batchSize) - 1)"])
    try run(Self.commit)
    try run(["BEGIN IMMEDIATE"])
    try run(Self.acknowledgement, count: batchSize)
    try run(["UPDATE channel SET message_count = message_count - \(batchSize) WHERE id = 1"])
    try run(Self.commit)
    next += Int64(batchSize)
  }

  private func run(_ statements: [String], count: Int = 1) throws {
    _ = try connection.run(Pass(statements: statements, count: count), countingFrom: next)
  }

  private static let schema = [
    "CREATE TABLE engine (id INTEGER PRIMARY KEY, commit_number INTEGER NOT NULL)",
    "INSERT INTO engine VALUES (1, 0)",
    "CREATE TABLE channel (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, message_count INTEGER)",
    "INSERT INTO channel VALUES (1, 'benchmark', 0)",
    """
    CREATE TABLE message (
      timetoken INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, priority INTEGER NOT NULL,
      payload BLOB NOT NULL)
    """,
    "CREATE INDEX message_channel ON message (channel_id)",
    """
    CREATE TABLE position (
      consumer_id INTEGER, priority INTEGER, timetoken INTEGER, PRIMARY KEY (consumer_id, priority)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE delivery (
      consumer_id INTEGER NOT NULL, timetoken INTEGER NOT NULL, attempt_count INTEGER NOT NULL,
      lease BLOB, held_boot INTEGER, held_until INTEGER, PRIMARY KEY (consumer_id, timetoken)
    ) WITHOUT ROWID
    """,
    """
    CREATE INDEX delivery_held ON delivery (consumer_id, held_boot, held_until)
    WHERE held_until IS NOT NULL
    """,
  ]

  private static let beginning = [
    "BEGIN IMMEDIATE",
    "SELECT id FROM channel WHERE name = 'benchmark'",
    """
    UPDATE delivery SET held_boot = NULL, held_until = NULL
    WHERE consumer_id = 1 AND held_until IS NOT NULL AND (held_boot, held_until) <= (1, 1)
    """,
    "SELECT timetoken FROM position WHERE consumer_id = 1 AND priority = 4",
  ]

  private static let lease = [
    "INSERT INTO delivery VALUES (1, :n, 1, x'000102030405060708090a0b0c0d0e0f', 1, 1000000000000)"
  ]

  private static let acknowledgement = [
    "SELECT lease, attempt_count FROM delivery WHERE consumer_id = 1 AND timetoken = :n",
    "DELETE FROM delivery WHERE consumer_id = 1 AND timetoken = :n",
    "DELETE FROM message WHERE timetoken = :n RETURNING length(payload)",
  ]

  private static let commit = [
    "UPDATE engine SET commit_number = commit_number + 1", "COMMIT",
  ]
}
