/// What a vault shows without a password.
public struct VaultStatus: Sendable, Equatable {
  /// The version of the file's format.
  public let formatVersion: Int

  /// False only under the standard credentials.
  public let isSecured: Bool

  /// Failed attempts after which the vault is to be deleted; 0 = none.
  ///
  /// Carried through every write; nothing enforces it yet.
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
