import MessagingQueue
import Testing

@Suite struct StartDecisionTests {
  typealias Row = (StartDecision.GivenVault, StartDecision.StoredVault, Bool, StartDecision.Action)

  /// Every combination of the facts: given, stored, database exists, what follows.
  static let table: [Row] = [
    (.none, .absent, false, .createStandardVault),
    (.none, .absent, true, .refuse(.keyMissing)),
    (.none, .standardUnbound, false, .tryStandardCredentials),
    (.none, .standardUnbound, true, .refuse(.foreignDatabase)),
    (.none, .standardCreating, false, .tryStandardCredentials),
    (.none, .standardCreating, true, .tryStandardCredentials),
    (.none, .standardBound, false, .refuse(.databaseMissing)),
    (.none, .standardBound, true, .tryStandardCredentials),
    (.none, .securedUnbound, false, .refuse(.vaultLocked)),
    (.none, .securedUnbound, true, .refuse(.foreignDatabase)),
    (.none, .securedCreating, false, .refuse(.vaultLocked)),
    (.none, .securedCreating, true, .refuse(.vaultLocked)),
    (.none, .securedBound, false, .refuse(.databaseMissing)),
    (.none, .securedBound, true, .refuse(.vaultLocked)),

    (.locked, .absent, false, .refuse(.vaultMissing)),
    (.locked, .absent, true, .refuse(.keyMissing)),
    (.locked, .standardUnbound, false, .tryStandardCredentials),
    (.locked, .standardUnbound, true, .refuse(.foreignDatabase)),
    (.locked, .standardCreating, false, .tryStandardCredentials),
    (.locked, .standardCreating, true, .tryStandardCredentials),
    (.locked, .standardBound, false, .refuse(.databaseMissing)),
    (.locked, .standardBound, true, .tryStandardCredentials),
    (.locked, .securedUnbound, false, .refuse(.vaultLocked)),
    (.locked, .securedUnbound, true, .refuse(.foreignDatabase)),
    (.locked, .securedCreating, false, .refuse(.vaultLocked)),
    (.locked, .securedCreating, true, .refuse(.vaultLocked)),
    (.locked, .securedBound, false, .refuse(.databaseMissing)),
    (.locked, .securedBound, true, .refuse(.vaultLocked)),

    (.unlocked, .absent, false, .refuse(.vaultMissing)),
    (.unlocked, .absent, true, .refuse(.keyMissing)),
    (.unlocked, .standardUnbound, false, .useGivenVault),
    (.unlocked, .standardUnbound, true, .refuse(.foreignDatabase)),
    (.unlocked, .standardCreating, false, .useGivenVault),
    (.unlocked, .standardCreating, true, .useGivenVault),
    (.unlocked, .standardBound, false, .refuse(.databaseMissing)),
    (.unlocked, .standardBound, true, .useGivenVault),
    (.unlocked, .securedUnbound, false, .useGivenVault),
    (.unlocked, .securedUnbound, true, .refuse(.foreignDatabase)),
    (.unlocked, .securedCreating, false, .useGivenVault),
    (.unlocked, .securedCreating, true, .useGivenVault),
    (.unlocked, .securedBound, false, .refuse(.databaseMissing)),
    (.unlocked, .securedBound, true, .useGivenVault),
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

  @Test func `standard credentials are never tried on a secured vault`() {
    for given in StartDecision.GivenVault.allCases {
      for stored in StartDecision.StoredVault.allCases where stored.isSecured {
        for databaseExists in [false, true] {
          let decision = StartDecision(
            given: given, stored: stored, databaseExists: databaseExists)
          #expect(decision.action != .tryStandardCredentials)
          #expect(decision.action != .createStandardVault)
        }
      }
    }
  }
}
