import FaultVFS
import TestSupport

/// Random statements from a seed, on two databases, a temporary one and their settings.
///
/// Some of the statements fail. They must fail in the same way on both sides.
struct RandomStatements {
  private var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  enum Step {
    case sql(String)
    /// Closes the connection and opens it again.
    case reopen
  }

  private static let schemas = ["main", "second", "temp"]
  private static let modes = ["DELETE", "TRUNCATE", "PERSIST", "WAL", "MEMORY"]

  private mutating func table() -> String { "\(Self.schemas[random.next(3)]).t\(random.next(4))" }

  private mutating func value() -> String {
    switch random.next(6) {
    case 0: "NULL"
    case 1: "\(random.next(1_000_000) - 500_000)"
    case 2: "\(random.next(1000)).25"
    case 3: "zeroblob(\(random.next(20_000)))"
    case 4: "hex(zeroblob(\(random.next(4000))))"
    default: "'text \(random.next(500))'"
    }
  }

  /// The next step; the caller passes the file names, which differ between the two sides.
  mutating func next(second: String) -> Step {
    switch random.next(100) {
    case 0..<6:
      let primaryKey = ["INTEGER PRIMARY KEY", "TEXT", "INTEGER"][random.next(3)]
      return .sql("CREATE TABLE IF NOT EXISTS \(table()) (a \(primaryKey), b, c)")
    case 6..<8: return .sql("DROP TABLE IF EXISTS \(table())")
    case 8..<11:
      let name = table().split(separator: ".")
      let unique = random.oneIn(4) ? "UNIQUE " : ""
      return .sql(
        "CREATE \(unique)INDEX IF NOT EXISTS \(name[0]).i\(random.next(6)) ON \(name[1]) (b)")
    case 11..<12:
      return .sql("DROP INDEX IF EXISTS \(Self.schemas[random.next(3)]).i\(random.next(6))")
    case 12..<40:
      let rows = (0...random.next(4)).map { _ in
        "(\(random.next(2000)), \(value()), \(value()))"
      }
      let conflict = ["", " OR REPLACE", " OR IGNORE"][random.next(3)]
      return .sql("INSERT\(conflict) INTO \(table()) VALUES \(rows.joined(separator: ", "))")
    case 40..<42:
      return .sql(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
        WHERE i < \(random.next(400))) \
        INSERT OR IGNORE INTO \(table()) SELECT i * 7, i % 13, hex(i) FROM n
        """)
    case 42..<52:
      return .sql("UPDATE \(table()) SET b = \(value()) WHERE a % 5 = \(random.next(5))")
    case 52..<58: return .sql("DELETE FROM \(table()) WHERE a % 7 = \(random.next(7))")
    case 58..<68:
      return .sql(
        "SELECT count(*), sum(length(b)), max(c) FROM \(table()) WHERE a > \(random.next(2000))")
    case 68..<71: return .sql("SELECT b, count(*) FROM \(table()) GROUP BY b ORDER BY 2 DESC, 1")
    case 71..<76: return .sql("BEGIN\([" IMMEDIATE", "", " EXCLUSIVE"][random.next(3)])")
    case 76..<81: return .sql("COMMIT")
    case 81..<83: return .sql("ROLLBACK")
    case 83..<86: return .sql("SAVEPOINT s\(random.next(2))")
    case 86..<88: return .sql("ROLLBACK TO s\(random.next(2))")
    case 88..<89: return .sql("RELEASE s\(random.next(2))")
    case 89..<90: return .sql("VACUUM\(random.oneIn(2) ? " second" : "")")
    case 90..<92: return .sql("PRAGMA \(Self.schemas[random.next(2)]).wal_checkpoint(TRUNCATE)")
    case 92..<94:
      return .sql(
        "PRAGMA \(Self.schemas[random.next(2)]).journal_mode = \(Self.modes[random.next(5)])")
    case 94..<95: return .sql("PRAGMA cache_size = \([3, 20, -2000][random.next(3)])")
    case 95..<96:
      return .sql("PRAGMA \(Self.schemas[random.next(2)]).user_version = \(random.next(99))")
    case 96..<97: return .sql("DETACH second")
    case 97..<99: return .sql("ATTACH '\(second)' AS second")
    default: return .reopen
    }
  }
}
