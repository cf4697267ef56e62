/// Statements that are run over and over; described as data, so that Swift and Python run the same.
///
/// Their parameters have fixed names: `:n` counts up from 1 over the life of a database, `:payload` is
/// 1 KiB, `:random` lies between 1 and `randomLimit`.
struct Pass: Codable {
  let statements: [String]
  let count: Int
  /// How many runs share a transaction; nil where the statements say themselves, or each is its own.
  var countPerTransaction: Int?
  var randomLimit = 1
}

/// A database that a workload needs, made once for each contestant.
struct DatabaseRecipe: Codable {
  let name: String
  let schema: [String]
  var fill: Pass?
  /// How the workload's connection is set once the database is filled.
  let settings: [String]
}

/// What is timed: passes on one database.
struct Workload {
  let name: String
  let goal: Double
  let recipe: DatabaseRecipe
  let pass: Pass
  var kind = Kind.pass
  var roundCount = 7
  /// How many times SQLCipher's speed ours has to be.
  var leastSpeedOfSQLCipher: Double?

  enum Kind: String, Codable {
    /// The pass on the open connection.
    case pass
    /// As a pass, but the file's pages are dropped from the system's cache before.
    case coldPass
    /// Opening, one pass and closing, as often as `count` says.
    case opening
  }
}
