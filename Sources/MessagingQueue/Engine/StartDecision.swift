/// Decides how an engine starts: facts in, one action out.
///
/// This type does no I/O and reads no clock. These rules hold:
/// - A database never loses its key: the engine makes no vault beside an existing database.
/// - The engine never tries the publicly known credentials on a secured vault, nor makes a vault in
///   its place. A secured vault opens through its user's session or not at all.
/// - If a session names a vault that is missing, the engine does not make it again: its file system
///   can be unmounted. An unsecured vault has no session: if one names it, it was replaced.
///
/// `VaultedDatabase` decides later, from the open vault, whether database and vault belong
/// together.
package struct StartDecision: Sendable, Hashable {
  /// The vault that the caller gave.
  package enum GivenVault: Sendable, Hashable, CaseIterable {
    case none
    case locked
    case unlocked
  }

  /// The stored vault, by its clear members, which are not authenticated before the unlock.
  package enum StoredVault: Sendable, Hashable, CaseIterable {
    case absent
    /// It states that it opens with the standard credentials.
    case standard
    /// It opens only with the user's credentials.
    case secured
  }

  /// The engine's next step.
  package enum Action: Sendable, Hashable {
    /// Take the key from the vault that the caller gave: it is open.
    case useGivenVault
    /// Make a vault with the standard credentials: this is the first start.
    case createStandardVault
    /// Try the standard credentials, once.
    case tryStandardCredentials
    /// Look for a session that opens the vault; refuse if there is none.
    case trySession
    case refuse(Refusal)
  }

  /// Why the engine does not start.
  package enum Refusal: Sendable, Hashable {
    /// There is a database, but no vault with its key.
    case keyMissing
    /// The vault is missing that the caller gave or a session names.
    case vaultMissing
    /// There is no vault, and a secured one is required.
    case nothingSecured
    /// The vault is not secured, and a secured one is required.
    case notSecured
    /// The vault is not secured, but a session names it.
    case replaced
    /// No session opens the vault.
    case locked
  }

  package var given: GivenVault
  package var stored: StoredVault
  package var databaseExists: Bool
  /// Whether a live session names the messaging vault of this home; not asked if it is secured.
  package var sessionExists: Bool
  /// Whether the engine must neither make nor open an unsecured vault.
  package var requiresSecuredVault: Bool

  package init(
    given: GivenVault, stored: StoredVault, databaseExists: Bool, sessionExists: Bool,
    requiresSecuredVault: Bool
  ) {
    self.given = given
    self.stored = stored
    self.databaseExists = databaseExists
    self.sessionExists = sessionExists
    self.requiresSecuredVault = requiresSecuredVault
  }

  package var action: Action {
    switch (stored, given) {
    case (.absent, _) where databaseExists: .refuse(.keyMissing)
    case (.absent, .none) where !sessionExists && !requiresSecuredVault: .createStandardVault
    case (.absent, .none) where !sessionExists: .refuse(.nothingSecured)
    case (.absent, _): .refuse(.vaultMissing)
    case (.standard, _) where requiresSecuredVault: .refuse(.notSecured)
    case (.standard, .unlocked), (.secured, .unlocked): .useGivenVault
    case (.standard, _) where sessionExists: .refuse(.replaced)
    case (.standard, .none), (.standard, .locked): .tryStandardCredentials
    case (.secured, .none), (.secured, .locked): .trySession
    }
  }
}
