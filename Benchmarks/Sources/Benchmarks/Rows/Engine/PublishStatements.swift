/// The engine's own statements for publishing a message of 1 KiB, without an engine.
///
/// They change four pages: of the log and its index, of the channels and of the engine's row.
enum PublishStatements {
  private static let recipe = DatabaseRecipe(
    name: "publish",
    schema: [
      """
      CREATE TABLE engine (
        id INTEGER PRIMARY KEY, commit_number INTEGER NOT NULL, timetoken_high_water INTEGER NOT NULL)
      """,
      "INSERT INTO engine VALUES (1, 0, 0)",
      """
      CREATE TABLE channel (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, message_count INTEGER NOT NULL,
        byte_count INTEGER NOT NULL, published_count INTEGER NOT NULL)
      """,
      "INSERT INTO channel VALUES (1, 'benchmark', 0, 0, 0)",
      """
      CREATE TABLE message (
        timetoken INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, priority INTEGER NOT NULL,
        payload BLOB NOT NULL)
      """,
      "CREATE INDEX message_channel ON message (channel_id)",
    ],
    settings: ["PRAGMA synchronous = FULL"])

  private static let statements = [
    "BEGIN IMMEDIATE",
    "SELECT timetoken_high_water FROM engine",
    "SELECT id FROM channel WHERE name = 'benchmark'",
    "INSERT INTO message VALUES (:n, 1, 4, :payload)",
    "UPDATE engine SET timetoken_high_water = :n, commit_number = commit_number + 1",
    """
    UPDATE channel SET message_count = message_count + 1, published_count = published_count + 1,
      byte_count = byte_count + 1024 WHERE id = 1
    """,
    "COMMIT",
  ]

  /// The cost of one message.
  static func costPerMessage(on contestant: any Contestant, count: Int) throws -> Cost {
    try contestant.prepare(recipe)
    let pass = Pass(statements: statements, count: count)
    return try contestant.run(pass, on: recipe, as: .pass) / Double(count)
  }
}
