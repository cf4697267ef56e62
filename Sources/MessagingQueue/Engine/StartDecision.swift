/// What the engine does at its start: facts in, one action out.
///
/// Nothing here looks at a file or a clock. The rule behind the table: a database is never left
/// without its key, and a secured vault is never replaced by one that opens with the publicly
/// known password.
package struct StartDecision: Sendable, Hashable {
  /// What the caller handed in.
  package enum GivenVault: Sendable, Hashable, CaseIterable {
    case none
    case locked
    case unlocked
  }

  /// What the store holds; from the clear members, which are not authenticated before the unlock.
  package enum StoredVault: Sendable, Hashable, CaseIterable {
    case absent
    /// Opens with the standard credentials, and no database belongs to it yet.
    case standardUnbound
    /// Opens with the standard credentials, and its database was begun but not finished.
    case standardCreating
    /// Opens with the standard credentials, and has a database.
    case standardBound
    case securedUnbound
    case securedCreating
    case securedBound
  }

  /// What to do.
  package enum Action: Sendable, Hashable {
    /// The vault that was handed in is open: take the key from it.
    case useGivenVault
    /// First start: make a vault with the standard credentials.
    case createStandardVault
    /// Try the standard credentials, once.
    case tryStandardCredentials
    case refuse(EngineError.Code)
  }

  package var given: GivenVault
  package var stored: StoredVault
  package var databaseExists: Bool

  package init(given: GivenVault, stored: StoredVault, databaseExists: Bool) {
    self.given = given
    self.stored = stored
    self.databaseExists = databaseExists
  }

  package var action: Action {
    switch (stored, databaseExists) {
    case (.absent, true): .refuse(.keyMissing)
    case (.absent, false): given == .none ? .createStandardVault : .refuse(.vaultMissing)
    case (.standardBound, false), (.securedBound, false): .refuse(.databaseMissing)
    case (.standardUnbound, true), (.securedUnbound, true): .refuse(.foreignDatabase)
    default:
      if given == .unlocked {
        .useGivenVault
      } else if stored.isSecured {
        .refuse(.vaultLocked)
      } else {
        .tryStandardCredentials
      }
    }
  }
}

extension StartDecision.StoredVault {
  package var isSecured: Bool {
    switch self {
    case .absent, .standardUnbound, .standardCreating, .standardBound: false
    case .securedUnbound, .securedCreating, .securedBound: true
    }
  }
}
