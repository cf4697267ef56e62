/// Statements that run repeatedly, described as data, so that Swift and Python run the same ones.
///
/// Their parameters have fixed names. `:n` counts from 1 over the life of a database, `:payload` is
/// 1 KiB, and `:random` is between 1 and `randomLimit`.
struct Pass: Codable {
  let statements: [String]
  let count: Int
  /// How many runs share a transaction; nil if the statements begin transactions, or each run is
  /// its own.
  var countPerTransaction: Int?
  var randomLimit = 1
}

/// A database that a workload needs.
///
/// It is created once for each contestant.
struct DatabaseRecipe: Codable {
  let name: String
  let schema: [String]
  var fill: Pass?
  /// The settings of the workload's connection after the database is filled.
  let settings: [String]
}

/// A workload: timed passes on one database.
struct Workload {
  let name: String
  let goal: Double
  let recipe: DatabaseRecipe
  let pass: Pass
  var kind = Kind.pass
  var roundCount = 7
  /// The goal for our speed, as a multiple of SQLCipher's.
  var leastSpeedOfSQLCipher: Double?

  enum Kind: String, Codable {
    /// A pass on the open connection.
    case pass
    /// A pass after the file was dropped from the system's cache.
    case coldPass
    /// Opening, one pass and closing, `count` times.
    case opening
  }
}
