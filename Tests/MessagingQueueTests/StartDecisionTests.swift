import MessagingQueue
import Testing

@Suite struct StartDecisionTests {
  typealias Row = (StartDecision.GivenVault, StartDecision.StoredVault, Bool, StartDecision.Action)

  /// Every combination of the facts: given, stored, database exists, what follows.
  static let table: [Row] = [
    (.none, .absent, false, .createStandardVault),
    (.none, .absent, true, .refuse(.keyMissing)),
    (.none, .standard, false, .tryStandardCredentials),
    (.none, .standard, true, .tryStandardCredentials),
    (.none, .secured, false, .trySession),
    (.none, .secured, true, .trySession),

    (.locked, .absent, false, .refuse(.vaultMissing)),
    (.locked, .absent, true, .refuse(.keyMissing)),
    (.locked, .standard, false, .tryStandardCredentials),
    (.locked, .standard, true, .tryStandardCredentials),
    (.locked, .secured, false, .trySession),
    (.locked, .secured, true, .trySession),

    (.unlocked, .absent, false, .refuse(.vaultMissing)),
    (.unlocked, .absent, true, .refuse(.keyMissing)),
    (.unlocked, .standard, false, .useGivenVault),
    (.unlocked, .standard, true, .useGivenVault),
    (.unlocked, .secured, false, .useGivenVault),
    (.unlocked, .secured, true, .useGivenVault),
  ]

  @Test(arguments: table.indices)
  func `the start follows the table`(index: Int) {
    let (given, stored, databaseExists, action) = Self.table[index]
    let decision = StartDecision(given: given, stored: stored, databaseExists: databaseExists)
    #expect(decision.action == action, "\(given) \(stored) database: \(databaseExists)")
  }

  @Test func `the table has every combination once`() {
    let rows = Set(
      Self.table.map { StartDecision(given: $0.0, stored: $0.1, databaseExists: $0.2) })
    let combinations =
      StartDecision.GivenVault.allCases.count * StartDecision.StoredVault.allCases.count * 2
    #expect(rows.count == Self.table.count)
    #expect(rows.count == combinations)
  }
}
