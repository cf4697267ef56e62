import Testing

@testable import VaultedDatabase

/// The table "Opening" of `docs/explanation/vaulted-database.md`, row by row.
@Suite struct OpeningDecisionTests {
  typealias Binding = OpeningDecision.Binding
  typealias Database = OpeningDecision.Database

  static let ours: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
  static let other: [UInt8] = [8, 7, 6, 5, 4, 3, 2, 1]

  @Test func aFreshVaultWithoutDatabaseMakesOne() {
    #expect(OpeningDecision(binding: .none, database: .absent) == .create)
  }

  @Test(arguments: [Database.sealed(fileID: ours), .unrecognized, .orphanedLog])
  func aVaultWithoutBindingNeverTakesADatabaseThatIsThere(_ database: Database) {
    #expect(OpeningDecision(binding: .none, database: database) == .refuse(.databaseMismatch))
  }

  @Test func anInterruptedCreationGoesOn() {
    #expect(
      OpeningDecision(binding: .creating(Self.ours), database: .absent)
        == .resumeCreation(Self.ours))
    #expect(
      OpeningDecision(binding: .creating(Self.ours), database: .sealed(fileID: Self.ours))
        == .finishCreation)
  }

  @Test(arguments: [Database.sealed(fileID: other), .unrecognized, .orphanedLog])
  func aCreationNeverReplacesWhatLiesInItsPlace(_ database: Database) {
    #expect(
      OpeningDecision(binding: .creating(Self.ours), database: database)
        == .refuse(.databaseMismatch))
  }

  @Test func aBoundVaultOpensItsOwnDatabaseAlone() {
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .sealed(fileID: Self.ours)) == .open)
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .sealed(fileID: Self.other))
        == .refuse(.databaseMismatch))
  }

  @Test(arguments: [Database.absent, .orphanedLog])
  func aBoundVaultNeverMakesASecondDatabase(_ database: Database) {
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: database)
        == .refuse(.databaseMissing))
  }

  @Test func aBoundVaultTellsDamageFromAForeignDatabase() {
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .unrecognized) == .refuse(.damaged))
    #expect(
      OpeningDecision(binding: .bound(Self.ours), database: .damagedHeader) == .refuse(.damaged))
  }

  @Test(arguments: [Binding.none, .creating(ours), .bound(ours)])
  func plainAndNewerFilesAreRefusedByName(_ binding: Binding) {
    #expect(
      OpeningDecision(binding: binding, database: .plain) == .refuse(.plainDatabase))
    #expect(
      OpeningDecision(binding: binding, database: .newerVersion) == .refuse(.newerVersion))
  }
}
