/// The engine's statements for lease and acknowledgement, for contestants without an engine.
enum QueueStatements {
  static let roundCount = 11
  private static let count = 300

  static let recipe = DatabaseRecipe(
    name: "queue",
    schema: [
      "CREATE TABLE engine (id INTEGER PRIMARY KEY, commit_number INTEGER NOT NULL)",
      "INSERT INTO engine VALUES (1, 0)",
      "CREATE TABLE channel (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
      "INSERT INTO channel VALUES (1, 'benchmark')",
      """
      CREATE TABLE message (
        timetoken INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, payload BLOB NOT NULL)
      """,
      """
      CREATE TABLE delivery (
        timetoken INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL,
        attempt_count INTEGER NOT NULL DEFAULT 0, lease BLOB, held_boot INTEGER, held_until INTEGER)
      """,
      "CREATE INDEX delivery_ready ON delivery (channel_id) WHERE held_until IS NULL",
      """
      CREATE INDEX delivery_held ON delivery (channel_id, held_boot, held_until)
      WHERE held_until IS NOT NULL
      """,
    ],
    fill: Pass(
      statements: [
        "INSERT INTO message VALUES (:n, 1, :payload)",
        "INSERT INTO delivery (timetoken, channel_id) VALUES (:n, 1)",
      ],
      count: (roundCount + 1) * count, countPerTransaction: 1000),
    settings: ["PRAGMA synchronous = FULL"])

  static let leaseAndAcknowledge = Pass(
    statements: [
      "BEGIN IMMEDIATE",
      "SELECT id FROM channel WHERE name = 'benchmark'",
      """
      SELECT delivery.timetoken, attempt_count, payload
      FROM delivery JOIN message USING (timetoken)
      WHERE delivery.channel_id = 1 AND held_until IS NOT NULL
        AND (held_boot, held_until) <= (1, 1)
      ORDER BY held_boot, held_until, delivery.timetoken LIMIT 1
      """,
      """
      SELECT delivery.timetoken, attempt_count, payload
      FROM delivery JOIN message USING (timetoken)
      WHERE delivery.channel_id = 1 AND held_until IS NULL
      ORDER BY delivery.timetoken LIMIT 1
      """,
      """
      UPDATE delivery SET attempt_count = 1, lease = x'000102030405060708090a0b0c0d0e0f',
        held_boot = 1, held_until = 1000000000000 WHERE timetoken = :n
      """,
      "UPDATE engine SET commit_number = commit_number + 1",
      "COMMIT",
      "BEGIN IMMEDIATE",
      "SELECT lease FROM delivery WHERE timetoken = :n",
      "DELETE FROM delivery WHERE timetoken = :n",
      "DELETE FROM message WHERE timetoken = :n",
      "UPDATE engine SET commit_number = commit_number + 1",
      "COMMIT",
    ],
    count: count)
}
