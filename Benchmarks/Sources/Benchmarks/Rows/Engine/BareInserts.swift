import SystemPackage

/// The reference for publishing: inserts of 1 KiB into one table with one index, without a queue.
///
/// They run on a plain file or on a peer.
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

  /// - Parameter size: the rows of a transaction; nil for one transaction per row.
  static func pass(count: Int, countPerTransaction size: Int? = nil) -> Pass {
    Pass(
      statements: ["INSERT INTO message (channel_id, payload) VALUES (1, :payload)"], count: count,
      countPerTransaction: size)
  }

  /// The cost of one row.
  static func costPerRow(
    on contestant: any Contestant, count: Int, countPerTransaction size: Int? = nil
  ) throws -> Cost {
    try contestant.prepare(recipe)
    let pass = pass(count: count, countPerTransaction: size)
    return try contestant.run(pass, on: recipe, as: .pass) / Double(count)
  }
}
