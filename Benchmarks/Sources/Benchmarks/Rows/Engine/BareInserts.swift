import SystemPackage

/// What an engine's publishing is measured by: rows of 1 KiB in one table with one index, and nothing of
/// a queue, on a plain file or by a peer.
enum BareInserts {
  static let recipe = DatabaseRecipe(
    name: "bare",
    schema: [
      """
      CREATE TABLE message (
        id INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, payload BLOB NOT NULL)
      """,
      "CREATE INDEX message_channel ON message (channel_id)",
    ],
    settings: ["PRAGMA synchronous = FULL"])

  /// - Parameter size: rows a transaction; nil for a transaction each.
  static func pass(count: Int, countPerTransaction size: Int? = nil) -> Pass {
    Pass(
      statements: ["INSERT INTO message (channel_id, payload) VALUES (1, :payload)"], count: count,
      countPerTransaction: size)
  }

  /// What one row of it takes.
  static func costPerRow(
    on contestant: any Contestant, count: Int, countPerTransaction size: Int? = nil
  ) throws -> Cost {
    try contestant.prepare(recipe)
    let pass = pass(count: count, countPerTransaction: size)
    return try contestant.run(pass, on: recipe, as: .pass) / Double(count)
  }
}
