internal import FileLayer
internal import GRDB
internal import VaultCrypto

/// What the engine does at its start: facts in, one action out.
///
/// Nothing here looks at a file or a clock. The rule behind the table: a database is never left
/// without its key, and the publicly known credentials are never tried on a secured vault, nor put
/// in its place: that opens through a session of its user, or not at all. A vault that a session names
/// was there: it is not made again, as its file system can be unmounted. Whether database and vault
/// belong together is decided afterwards, by `VaultedDatabase`, on what the open vault says.
package struct StartDecision: Sendable, Hashable {
  /// What the caller handed in.
  package enum GivenVault: Sendable, Hashable, CaseIterable {
    case none
    case locked
    case unlocked
  }

  /// What the store holds, from the clear members: they are not authenticated before the unlock.
  package enum StoredVault: Sendable, Hashable, CaseIterable {
    case absent
    /// Opens with the standard credentials, it says.
    case standard
    /// Opens with the user's credentials only.
    case secured
  }

  /// What to do.
  package enum Action: Sendable, Hashable {
    /// The vault that was handed in is open: take the key from it.
    case useGivenVault
    /// First start: make a vault with the standard credentials.
    case createStandardVault
    /// Try the standard credentials, once.
    case tryStandardCredentials
    /// Look for a session that opens the vault, and refuse without one.
    case trySession
    case refuse(EngineError.Code)
  }

  package var given: GivenVault
  package var stored: StoredVault
  package var databaseExists: Bool
  /// Whether a live session opens the messaging vault of this very home; asked for one that is absent.
  package var sessionExists: Bool
  /// Whether a vault that is not secured must be neither made nor opened.
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
    case (.absent, _): .refuse(.vaultMissing)
    case (.standard, _) where requiresSecuredVault: .refuse(.notSecured)
    case (.standard, .unlocked), (.secured, .unlocked): .useGivenVault
    case (.standard, .none), (.standard, .locked): .tryStandardCredentials
    case (.secured, .none), (.secured, .locked): .trySession
    }
  }
}

/// Prepares the tables where blocking is allowed.
actor EngineOpener {
  private let executor = BlockingExecutor(label: "datavault.engine-opener")

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  func open(
    _ pool: DatabasePool, _ snapshots: SnapshotReader, time: any TimeSource, random: RandomSource,
    configuration: EngineConfiguration, notifier: ChangeNotifier, commitCounter: CommitCounter?
  ) throws(EngineError) -> EngineDatabase {
    try EngineDatabase(
      pool: pool, snapshots: snapshots, time: time, random: random, configuration: configuration,
      notifier: notifier, commitCounter: commitCounter)
  }
}
