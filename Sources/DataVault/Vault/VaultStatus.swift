internal import FileLayer

/// What a vault shows without a password.
public struct VaultStatus: Sendable, Equatable {
  /// The version of the file's format.
  public let formatVersion: Int

  /// False only under the standard credentials.
  public let isSecured: Bool

  /// The wrong attempts in a row that are allowed: the next one deletes the vault; 0 = any number.
  public let retryLimit: Int

  /// The database whose key the vault keeps.
  public let binding: DatabaseBinding?

  /// What opens the vault, each alone.
  public let slots: [Slot]

  /// Whether the rest is known to be authentic.
  ///
  /// It is once the vault has been opened; before, whoever can write the file could have written
  /// it.
  public let isAuthenticated: Bool

  /// When the vault was last opened by one of its slots, in time since 1970-01-01 00:00 UTC; nil
  /// when that is not known.
  ///
  /// Openings by the standard credentials, and by a session, are not recorded. This and the next two
  /// come from a clear file of their own and are never authentic.
  public internal(set) var lastOpening: Duration? = nil

  /// The wrong attempts since then, over all processes.
  public internal(set) var failedAttemptCount = 0

  /// How long no attempt is taken, after wrong ones; zero when one is.
  public internal(set) var retryDelay: Duration = .zero

  /// One thing that opens a vault.
  public struct Slot: Sendable, Equatable {
    /// What it takes.
    public enum Kind: String, Sendable {
      /// A password, with an optional salt.
      case password
      /// A printed code.
      case recoveryCode
      /// A file of 32 bytes.
      case keyFile

      /// For messages, behind "a".
      var words: String {
        switch self {
        case .password: "password"
        case .recoveryCode: "recovery code"
        case .keyFile: "key file"
        }
      }
    }

    /// What it takes.
    public let kind: Kind
    /// The slot's name; a password has none.
    public let name: String?
    /// What no other slot of the vault is called: `password`, `recovery:NAME` or `keyfile:NAME`.
    public let identifier: String
    /// PBKDF2 iterations, for a password.
    public let iterationCount: Int?
  }
}

extension VaultStatus {
  /// Adds what is recorded of attempts.
  mutating func take(_ record: AttemptRecord, now: UnixTime) {
    var record = record
    record.limitWait(at: now)
    lastOpening = record.openedAtMilliseconds.map(Duration.milliseconds)
    failedAttemptCount = record.failureCount
    retryDelay = record.wait(at: now)
  }
}

/// Which database a vault belongs to.
public struct DatabaseBinding: Sendable, Equatable {
  /// How far the binding has come.
  public enum State: String, Sendable {
    /// The key is stored, the database may not be in its place yet.
    case creating
    /// The database was in its place.
    case bound
  }

  /// The 8 bytes of the file id in the database's header.
  public let databaseID: [UInt8]
  /// How far the binding has come.
  public let state: State

  package init(databaseID: [UInt8], state: State) {
    self.databaseID = databaseID
    self.state = state
  }
}
