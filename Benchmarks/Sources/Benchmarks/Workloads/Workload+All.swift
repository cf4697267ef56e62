extension Workload {
  static let rowCountOfLargeDatabase = 200_000

  private static let messages =
    "CREATE TABLE message (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)"
  private static let insert = "INSERT INTO message (payload) VALUES (:payload)"
  private static let durable = ["PRAGMA synchronous = FULL"]

  static var all: [Workload] {
    [
      durableInsert, normalInsert, batches, leaseAndAcknowledge, coldScan, warmScan,
      scanOfSingleInserts, pointReads, opening,
    ]
  }

  private static let durableInsert = Workload(
    name: "insert, 1 KiB, FULL", goal: 1.10,
    recipe: DatabaseRecipe(name: "inserts", schema: [messages], settings: durable),
    pass: Pass(statements: [insert], count: 500), roundCount: 11)

  private static let normalInsert = Workload(
    name: "insert, 1 KiB, NORMAL", goal: 1.20,
    recipe: DatabaseRecipe(
      name: "normal", schema: [messages], settings: ["PRAGMA synchronous = NORMAL"]),
    pass: Pass(statements: [insert], count: 5000), roundCount: 11)

  private static let batches = Workload(
    name: "batches of 1000, FULL", goal: 1.12,
    recipe: DatabaseRecipe(name: "batches", schema: [messages], settings: durable),
    pass: Pass(statements: [insert], count: 20_000, countPerTransaction: 1000), roundCount: 9)

  private static let leaseAndAcknowledge = Workload(
    name: "lease + acknowledge, FULL", goal: 1.20, recipe: QueueStatements.recipe,
    pass: QueueStatements.leaseAndAcknowledge, roundCount: QueueStatements.roundCount)

  /// Reads the whole database through a cache of 2 MB, SQLite's default.
  static let large = DatabaseRecipe(
    name: "large", schema: [messages],
    fill: Pass(
      statements: [insert], count: rowCountOfLargeDatabase, countPerTransaction: 100),
    settings: durable)
  private static let readAll = Pass(
    statements: ["SELECT count(*), sum(length(payload)) FROM message"], count: 1)

  private static let coldScan = Workload(
    name: "scan, 260 MiB, file not in memory", goal: 2.1, recipe: large, pass: readAll,
    kind: .coldPass, roundCount: 5, leastSpeedOfSQLCipher: 2.7)

  private static let warmScan = Workload(
    name: "scan, 260 MiB, file in memory", goal: 2.1, recipe: large, pass: readAll,
    leastSpeedOfSQLCipher: 2.7)

  /// Every page was last written by its own transaction, with its own key.
  ///
  /// This is the worst case for us.
  private static let scanOfSingleInserts = Workload(
    name: "scan, 26 MiB, each row its own commit", goal: 2.1,
    recipe: DatabaseRecipe(
      name: "singles", schema: [messages], fill: Pass(statements: [insert], count: 20_000),
      settings: durable),
    pass: Pass(statements: readAll.statements, count: 4))

  private static let pointReads = Workload(
    name: "100,000 reads by rowid, file in memory", goal: 1.6, recipe: large,
    pass: Pass(
      statements: ["SELECT payload FROM message WHERE id = :random"], count: 100_000,
      randomLimit: rowCountOfLargeDatabase))

  private static let opening = Workload(
    name: "open with a raw key, read, close", goal: 0,
    recipe: DatabaseRecipe(
      name: "small", schema: [messages], fill: Pass(statements: [insert], count: 10),
      settings: durable),
    pass: Pass(statements: ["SELECT count(*) FROM message"], count: 100), kind: .opening)
}
