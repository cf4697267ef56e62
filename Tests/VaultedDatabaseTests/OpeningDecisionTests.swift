import Testing

@testable import VaultedDatabase

/// The table "Opening" of `docs/explanation/vaulted-database.md`, row by row.
@Suite struct OpeningDecisionTests {
  typealias Binding = OpeningDecision.Binding
  typealias Database = OpeningDecision.Database

  static let ours: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
  static let other: [UInt8] = [8, 7, 6, 5, 4, 3, 2, 1]

  @Test func `a new vault without a database makes one`() {
    #expect(OpeningDecision(binding: .none, database: .absent) == .create)
  }

  @Test(arguments: [Database.sealed(fileID: ours), .unrecognized, .orphanedLog])
  func `an unbound vault never takes an existing database`(_ database: Database) {
    #expect(OpeningDecision(binding: .none, database: database) == .refuse(.databaseMismatch))
  }

  @Test func `an interrupted creation continues`() {
    #expect(
      OpeningDecision(binding: .creating(Self.ours), database: .absent)
        == .resumeCreation(Self.ours))
    #expect(
      OpeningDecision(binding: .creating(Self.ours), database: .sealed(fileID: Self.ours))
        == .finishCreation)
  }

  @Test(arguments: [Database.sealed(fileID: other), .unrecognized, .orphanedLog])
  func `a creation never replaces an existing file`(_ database: Database) {
    #expect(
      OpeningDecision(binding: .creating(Self.ours), database: database)
        == .refuse(.databaseMismatch))
  }

  @Test func `a bound vault opens only its own database`() {
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .sealed(fileID: Self.ours)) == .open)
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .sealed(fileID: Self.other))
        == .refuse(.databaseMismatch))
  }

  @Test(arguments: [Database.absent, .orphanedLog])
  func `a bound vault never makes a second database`(_ database: Database) {
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: database)
        == .refuse(.databaseMissing))
  }

  @Test func `a bound vault distinguishes damage from another database`() {
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .unrecognized) == .refuse(.damaged))
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .damagedHeader) == .refuse(.damaged))
  }

  @Test(arguments: [Binding.none, .creating(ours), .bound(ours)])
  func `plain and newer databases are refused with their own codes`(_ binding: Binding) {
    #expect(OpeningDecision(binding: binding, database: .plain) == .refuse(.plainDatabase))
    #expect(OpeningDecision(binding: binding, database: .newerVersion) == .refuse(.newerVersion))
  }
}
