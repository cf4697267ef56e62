import MessagingQueue
import Testing

@Suite struct StartDecisionTests {
  typealias Action = StartDecision.Action
  typealias Row = (
    StartDecision.GivenVault, StartDecision.StoredVault, databaseExists: Bool, Action,
    session: Action, required: Action
  )

  private static let noVault = Action.refuse(.vaultMissing)
  private static let nothingSecured = Action.refuse(.nothingSecured)
  private static let noKey = Action.refuse(.keyMissing)
  private static let notSecured = Action.refuse(.notSecured)
  private static let replaced = Action.refuse(.replaced)

  /// Every combination of given vault, stored vault and existing database, with its action.
  ///
  /// Then the action if a session names the vault, and the action if a secured vault is required,
  /// with or without a session.
  static let table: [Row] = [
    (.none, .absent, false, .createStandardVault, noVault, nothingSecured),
    (.none, .absent, true, noKey, noKey, noKey),
    (.none, .standard, false, .tryStandardCredentials, replaced, notSecured),
    (.none, .standard, true, .tryStandardCredentials, replaced, notSecured),
    (.none, .secured, false, .trySession, .trySession, .trySession),
    (.none, .secured, true, .trySession, .trySession, .trySession),

    (.locked, .absent, false, noVault, noVault, noVault),
    (.locked, .absent, true, noKey, noKey, noKey),
    (.locked, .standard, false, .tryStandardCredentials, replaced, notSecured),
    (.locked, .standard, true, .tryStandardCredentials, replaced, notSecured),
    (.locked, .secured, false, .trySession, .trySession, .trySession),
    (.locked, .secured, true, .trySession, .trySession, .trySession),

    (.unlocked, .absent, false, noVault, noVault, noVault),
    (.unlocked, .absent, true, noKey, noKey, noKey),
    (.unlocked, .standard, false, .useGivenVault, .useGivenVault, notSecured),
    (.unlocked, .standard, true, .useGivenVault, .useGivenVault, notSecured),
    (.unlocked, .secured, false, .useGivenVault, .useGivenVault, .useGivenVault),
    (.unlocked, .secured, true, .useGivenVault, .useGivenVault, .useGivenVault),
  ]

  private static func decision(
    _ row: Row, session: Bool = false, required: Bool = false
  ) -> StartDecision {
    StartDecision(
      given: row.0, stored: row.1, databaseExists: row.databaseExists, sessionExists: session,
      requiresSecuredVault: required)
  }

  @Test(arguments: table.indices)
  func `the decision follows the table`(index: Int) {
    let row = Self.table[index]
    #expect(Self.decision(row).action == row.3, "\(row)")
    #expect(Self.decision(row, session: true).action == row.session, "\(row)")
    for session in [false, true] {
      let decision = Self.decision(row, session: session, required: true)
      let required = session && row.required == Self.nothingSecured ? Self.noVault : row.required
      #expect(decision.action == required, "\(row)")
    }
  }

  @Test func `the table has every combination once`() {
    let rows = Set(Self.table.map { Self.decision($0) })
    let combinations =
      StartDecision.GivenVault.allCases.count * StartDecision.StoredVault.allCases.count * 2
    #expect(rows.count == Self.table.count)
    #expect(rows.count == combinations)
  }

  @Test func `requiresSecuredVault never leads to the standard credentials`() {
    for row in Self.table {
      let action = Self.decision(row, required: true).action
      #expect(action != .createStandardVault && action != .tryStandardCredentials)
    }
  }
}
