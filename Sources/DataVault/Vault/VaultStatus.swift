internal import FileLayer

/// A vault's public information, which needs no password.
public struct VaultStatus: Sendable, Equatable {
  /// The version of the file's format.
  public let formatVersion: Int

  /// False only under the standard credentials.
  public let isSecured: Bool

  /// The number of consecutive failed attempts that are allowed; 0 means no limit.
  ///
  /// One more failed attempt deletes the vault.
  public let retryLimit: Int

  /// The database whose key the vault holds.
  public let binding: DatabaseBinding?

  /// The slots; each one alone opens the vault.
  public let slots: [Slot]

  /// Whether the other properties are known to be authentic.
  ///
  /// They are after the vault has been opened. Before, anyone who can write the file could have
  /// changed them.
  public let isAuthenticated: Bool

  /// The time at which a slot last opened the vault, as time since 1970-01-01 00:00 UTC; nil when
  /// it is unknown.
  ///
  /// Openings by the standard credentials or by a session are not recorded. This and the next two
  /// properties come from an unencrypted file of their own and are never authenticated.
  public internal(set) var lastOpening: Duration? = nil

  /// The number of failed attempts since then, over all processes.
  public internal(set) var failedAttemptCount = 0

  /// The time until the vault accepts an attempt; zero when it accepts one now.
  public internal(set) var retryDelay: Duration = .zero

  /// A slot: one way to open a vault.
  public struct Slot: Sendable, Equatable {
    /// The kind of secret that a slot takes.
    public enum Kind: String, Sendable {
      /// A password, with an optional salt.
      case password
      /// A printed code.
      case recoveryCode
      /// A file of 32 bytes.
      case keyFile

      /// The kind in words, for messages: it follows "a".
      var words: String {
        switch self {
        case .password: "password"
        case .recoveryCode: "recovery code"
        case .keyFile: "key file"
        }
      }
    }

    /// The kind of secret that opens the slot.
    public let kind: Kind
    /// The slot's name; a password has none.
    public let name: String?
    /// The unique name of the slot: `password`, `recovery:NAME` or `keyfile:NAME`.
    public let identifier: String
    /// The PBKDF2 iterations of a password slot.
    public let iterationCount: Int?
  }
}

extension VaultStatus {
  /// Adds the recorded attempts.
  mutating func take(_ record: AttemptRecord, now: UnixTime) {
    var record = record
    record.limitWait(at: now)
    lastOpening = record.openedAtMilliseconds.map(Duration.milliseconds)
    failedAttemptCount = record.failureCount
    retryDelay = record.wait(at: now)
  }
}

/// The database that a vault belongs to.
public struct DatabaseBinding: Sendable, Equatable {
  /// The progress of the binding.
  public enum State: String, Sendable {
    /// The vault holds the key; the database might not be in its place yet.
    case creating
    /// The database has been in its place.
    case bound
  }

  /// The 8 bytes of the file id in the database's header.
  public let databaseID: [UInt8]
  /// The progress of the binding.
  public let state: State

  package init(databaseID: [UInt8], state: State) {
    self.databaseID = databaseID
    self.state = state
  }
}
