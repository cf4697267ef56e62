extension CrashWorkload {
  /// A table with an index and some pages of rows.
  static let start = [
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB)",
    insert(1...24),
  ]

  /// Rows of different lengths; one in eight is longer than a page.
  private static func insert(_ ids: ClosedRange<Int>) -> String {
    """
    WITH RECURSIVE n(i) AS (SELECT \(ids.lowerBound) UNION ALL SELECT i + 1 FROM n \
    WHERE i < \(ids.upperBound)) INSERT INTO t SELECT i, 'name ' || i, \
    CAST(substr(hex(i * 7919), 1, 4) || hex(zeroblob(i % 8 * 40 + (i % 8 = 0) * 2500)) AS BLOB) \
    FROM n
    """
  }

  /// Commits of every kind: rows in, out, changed, several statements, a rollback, a savepoint.
  private static let commits = [
    insert(100...106),
    "UPDATE t SET body = zeroblob(900) WHERE id % 5 = 0",
    "DELETE FROM t WHERE id % 3 = 0",
    "BEGIN; \(insert(200...204)); UPDATE t SET name = name || '!' WHERE id < 10; COMMIT",
    "BEGIN; DELETE FROM t WHERE id < 20; ROLLBACK",
    """
    BEGIN; \(insert(300...302)); SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; RELEASE s; COMMIT
    """,
    "CREATE TABLE u AS SELECT id, name FROM t WHERE id % 2 = 0",
    "PRAGMA user_version = 7",
    "DROP TABLE u",
  ]

  /// One transaction that changes every page many times over.
  private static func spill(_ round: Int) -> String {
    """
    BEGIN; \(insert(1000 * round...1000 * round + 40)); UPDATE t SET body = body || x'2E'; \
    UPDATE t SET name = name || '.\(round)'; DELETE FROM t WHERE id % 4 = \(round); COMMIT
    """
  }

  var creationSettings: [String] {
    self == .incrementalVacuum ? ["PRAGMA auto_vacuum = INCREMENTAL", "VACUUM"] : []
  }

  private static let durableLog = ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"]

  /// The settings before the first step, which do not change the contents.
  ///
  /// Without a log, FULL leaves the last step of a commit, the removal of the journal, to the
  /// system; EXTRA does not.
  func settings(_ recording: WorkRecording) -> [String] {
    var settings = ["PRAGMA temp_store = MEMORY"]
    switch self {
    case .log, .logVacuum, .incrementalVacuum: settings += Self.durableLog
    case .logSpills: settings += Self.durableLog + ["PRAGMA cache_size = 5"]
    case .checkpoints: settings += Self.durableLog + ["PRAGMA wal_autocheckpoint = 6"]
    case .normalLog:
      settings += [
        "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL",
        "PRAGMA wal_autocheckpoint = 12",
      ]
    case .truncatedJournal:
      settings += ["PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = FULL"]
    case .persistentJournal:
      settings += [
        "PRAGMA journal_mode = PERSIST", "PRAGMA synchronous = FULL", "PRAGMA cache_size = 5",
      ]
    case .journalSpills: settings += ["PRAGMA synchronous = EXTRA", "PRAGMA cache_size = 5"]
    case .superJournal:
      settings += [
        "PRAGMA synchronous = EXTRA", "ATTACH '\(recording.second)' AS s",
        "PRAGMA s.synchronous = EXTRA",
      ]
    default: settings += ["PRAGMA synchronous = EXTRA"]
    }
    return settings
  }

  var steps: [String] {
    switch self {
    case .creation: Self.start + Self.commits.prefix(3)
    case .creationInLog: ["PRAGMA journal_mode = WAL"] + Self.start + Self.commits.prefix(3)
    case .logSpills, .journalSpills: (1...3).map(Self.spill)
    case .persistentJournal:
      // After the records of the shorter transactions lie those of the longer one.
      Self.commits + [
        Self.spill(1), "UPDATE t SET body = zeroblob(200) WHERE id < 12",
        "BEGIN; UPDATE t SET name = name || 'x' WHERE id < 40; DELETE FROM t WHERE id < 9; ROLLBACK",
        "DELETE FROM t WHERE id % 7 = 0",
      ]
    case .checkpoints:
      Self.commits + ["PRAGMA wal_checkpoint(TRUNCATE)"] + [Self.spill(1)]
        + ["PRAGMA wal_checkpoint(RESTART)", "DELETE FROM t WHERE id % 2 = 0"]
    case .logVacuum, .journalVacuum:
      ["DELETE FROM t WHERE id % 2 = 0", "VACUUM", Self.commits[0], "VACUUM"]
    case .incrementalVacuum:
      [
        Self.spill(1), "DELETE FROM t WHERE id % 2 = 0", "PRAGMA incremental_vacuum(3)",
        "DELETE FROM t WHERE id > 20", "PRAGMA incremental_vacuum", Self.commits[0],
        "PRAGMA wal_checkpoint(TRUNCATE)",
      ]
    case .modeChanges:
      [
        Self.commits[0], "PRAGMA journal_mode = WAL", Self.commits[1],
        "PRAGMA journal_mode = TRUNCATE", Self.commits[2], "PRAGMA journal_mode = PERSIST",
        Self.commits[3], "PRAGMA journal_mode = WAL", Self.commits[5],
        "PRAGMA journal_mode = DELETE",
      ]
    case .superJournal:
      ["CREATE TABLE s.v (id INTEGER PRIMARY KEY, name TEXT, body BLOB)"]
        + (0..<4).map { round in
          """
          BEGIN; INSERT INTO s.v SELECT * FROM t WHERE id % 6 = \(round); \
          DELETE FROM t WHERE id % 6 = \(round); COMMIT
          """
        }
    default: Self.commits
    }
  }
}
