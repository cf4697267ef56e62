import Testing

@testable import VaultedDatabase

/// The table "Opening" of `docs/explanation/vaulted-database.md`, row by row.
@Suite struct OpeningDecisionTests {
  typealias Row = (OpeningDecision.Binding, OpeningDecision.Database, OpeningDecision)

  static let ours: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
  static let other: [UInt8] = [8, 7, 6, 5, 4, 3, 2, 1]

  static let table: [Row] = [
    (.none, .absent, .create),
    (.none, .sealed(fileID: ours), .refuse(.databaseMismatch)),
    (.none, .unrecognized, .refuse(.databaseMismatch)),
    (.none, .orphanedLog, .refuse(.databaseMismatch)),
    (.none, .plain, .refuse(.plainDatabase)),
    (.none, .newerVersion, .refuse(.newerVersion)),

    (.creating(ours), .absent, .resumeCreation(ours)),
    (.creating(ours), .sealed(fileID: ours), .finishCreation),
    (.creating(ours), .sealed(fileID: other), .refuse(.databaseMismatch)),
    (.creating(ours), .unrecognized, .refuse(.databaseMismatch)),
    (.creating(ours), .orphanedLog, .refuse(.databaseMismatch)),
    (.creating(ours), .plain, .refuse(.plainDatabase)),
    (.creating(ours), .newerVersion, .refuse(.newerVersion)),

    (.bound(ours), .absent, .refuse(.databaseMissing)),
    (.bound(ours), .orphanedLog, .refuse(.databaseMissing)),
    (.bound(ours), .sealed(fileID: ours), .open),
    (.bound(ours), .sealed(fileID: other), .refuse(.databaseMismatch)),
    (.bound(ours), .unrecognized, .refuse(.damaged)),
    (.bound(ours), .damagedHeader, .refuse(.damaged)),
    (.bound(ours), .plain, .refuse(.plainDatabase)),
    (.bound(ours), .newerVersion, .refuse(.newerVersion)),
  ]

  @Test(arguments: table.indices) func `the decision follows the table`(index: Int) {
    let row = Self.table[index]
    #expect(OpeningDecision(binding: row.0, database: row.1) == row.2, "\(row)")
  }
}
