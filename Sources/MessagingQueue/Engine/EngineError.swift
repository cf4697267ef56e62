internal import DataVault
internal import VaultedDatabase

/// The error that every call of the engine throws.
///
/// An error never carries a payload, a password or a key.
public struct EngineError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure, to be compared with the static members; a new version can add members.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    public let description: String

    init(_ name: String) { description = name }
  }

  /// The kind of failure.
  public let code: Code

  /// The failure and its place, in lower case.
  public let message: String

  /// The next step, if there is one.
  public let hint: String?

  /// The error of the layer below, if one was the cause.
  public let underlying: (any Error)?

  /// With ``Code/unknownLease``, the tokens that settled nothing; all other tokens were settled.
  public let unknownLeases: [LeaseToken]

  /// With ``Code/unknownLease`` of a release, the tokens whose messages became dead letters.
  public let deadLettered: [LeaseToken]

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil,
    unknownLeases: [LeaseToken] = [], deadLettered: [LeaseToken] = []
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
    self.unknownLeases = unknownLeases
    self.deadLettered = deadLettered
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension EngineError.Code {
  /// The messaging vault is locked, and the user's password is needed to open it.
  public static let vaultLocked = Self("vaultLocked")
  /// The password or the caller's salt does not open the vault.
  public static let wrongPassword = Self("wrongPassword")
  /// The vault is missing, although the caller gave it, a session opens it or a secured one is
  /// required.
  public static let vaultMissing = Self("vaultMissing")
  /// The vault is not secured, and ``EngineConfiguration/requiresSecuredVault`` is set.
  public static let notSecured = Self("notSecured")
  /// There is a database, but no vault that could hold its key.
  public static let keyMissing = Self("keyMissing")
  /// The vault belongs to a database that is missing.
  public static let databaseMissing = Self("databaseMissing")
  /// The database belongs to another vault, or to none.
  public static let databaseMismatch = Self("databaseMismatch")
  /// The database is an older copy or has lost its last commits.
  public static let rolledBack = Self("rolledBack")
  /// The engine was stopped.
  public static let stopped = Self("stopped")
  /// An unencrypted SQLite file has the path of the encrypted database.
  public static let plainDatabase = Self("plainDatabase")
  /// A payload is larger than ``EngineConfiguration/maximumPayloadByteCount``, or headers exceed
  /// their limit.
  public static let payloadTooLarge = Self("payloadTooLarge")
  /// A payload is not of the type as which it was decoded, or a value cannot be encoded.
  public static let invalidPayload = Self("invalidPayload")
  /// A channel name is empty, too long or contains control characters.
  public static let invalidChannel = Self("invalidChannel")
  /// A count, a lease, a delay, a name or another argument is out of range.
  public static let invalidArgument = Self("invalidArgument")
  /// A delivery is already settled, or the message has been leased again.
  public static let unknownLease = Self("unknownLease")
  /// Another process held the database for longer than the busy timeout; nothing was changed.
  public static let busy = Self("busy")
  /// Retention, a purge or the consumers removed messages before a live reader saw them.
  public static let messagesRemoved = Self("messagesRemoved")
  /// The database has reached its limit (``MessagingEngine/setMaximumDatabaseByteCount(_:)``); nothing was published.
  public static let queueFull = Self("queueFull")
  /// The file system is full; nothing was changed.
  public static let diskFull = Self("diskFull")
  /// The database can only be read.
  public static let readOnly = Self("readOnly")
  /// The database is damaged, or another program made it.
  public static let damaged = Self("damaged")
  /// The database was written by a newer version of this software.
  public static let newerVersion = Self("newerVersion")
  /// A commit met an I/O error: it is unknown whether its changes are on the disk.
  ///
  /// Publish again with the same deduplication id: that stores the message exactly once.
  public static let outcomeUnknown = Self("outcomeUnknown")
  /// The caller's task was cancelled before the operation began.
  public static let cancelled = Self("cancelled")
  /// The system failed to read or write; nothing was changed.
  public static let inputOutput = Self("inputOutput")
  /// The name of a new file is taken, or the messages of an import are already here.
  public static let alreadyExists = Self("alreadyExists")
  /// Another user made a lock file or an unfinished file, or could have made it.
  public static let foreignFile = Self("foreignFile")
  /// The channel does not exist.
  public static let channelMissing = Self("channelMissing")
  /// The file of messages to import does not exist.
  public static let fileMissing = Self("fileMissing")
  /// The home is one of several, and this process or this operation cannot change it.
  public static let replicated = Self("replicated")
  /// A file of messages is invalid; the message names the line.
  public static let invalidFile = Self("invalidFile")
  /// The vault failed; ``EngineError/underlying`` has its error.
  public static let vault = Self("vault")
}

extension EngineError {
  /// Throws `invalidArgument` unless an argument is valid.
  static func requireArgument(
    _ isValid: Bool, _ fault: @autoclosure () -> String, hint: @autoclosure () -> String
  ) throws(EngineError) {
    if !isValid { throw EngineError(.invalidArgument, fault(), hint: hint()) }
  }
}

extension EngineError {
  /// The error for a refusal of ``StartDecision``.
  init(_ refusal: StartDecision.Refusal, _ home: DataVaultHome) {
    let vault = "the messaging vault in \(home.path)"
    switch refusal {
    case .keyMissing:
      self.init(
        .keyMissing, "there are messages in \(home.path), but no vault that has their key",
        hint: "restore vaults/messaging.vault from a backup")
    case .vaultMissing:
      self.init(
        .vaultMissing, "\(vault) is missing, and none was made in its place",
        hint:
          "check that this is the right home and that its file system is mounted; to begin a new "
          + "home, end a session with datavault lock \(VaultID.messaging), then run datavault secure"
      )
    case .nothingSecured:
      self.init(
        .vaultMissing, "there is no messaging vault in \(home.path), and a secured one is required",
        hint:
          "check that this is the right home and that its file system is mounted; to begin a new "
          + "home, run datavault secure")
    case .notSecured:
      self.init(
        .notSecured,
        "\(vault) opens with the publicly known password, but a secured one is required",
        hint: "run datavault secure")
    case .replaced:
      self.init(
        .notSecured,
        "\(vault) opens with the publicly known password, but a session names a secured one",
        hint:
          "restore the vault if it was replaced; otherwise end the session with "
          + "datavault lock \(VaultID.messaging)")
    case .locked:
      self.init(
        .vaultLocked, "\(vault) is locked",
        hint: "run datavault unlock \(VaultID.messaging) as this user, or give its password")
    }
  }

  /// The error for a failure of the vault or of opening the database, when an engine starts.
  init(starting error: any Error) {
    switch error {
    case let error as EngineError:
      self = error
    case let error as VaultedDatabaseError:
      self.init(error)
    case let error as VaultError:
      self.init(Self.code(of: error), error.message, hint: error.hint, underlying: error)
    default:
      self.init(translating: error, during: "starting the engine")
    }
  }

  private init(_ error: VaultedDatabaseError) {
    if Self.databaseCodes.contains(error.code) {
      let hint = error.code == .damaged ? Self.damageHint : nil
      self.init(
        Code(error.code.description), error.message, hint: error.hint ?? hint, underlying: error)
    } else if let cause = error.underlying, cause is VaultError || cause is EngineError {
      self.init(starting: cause)
    } else {
      self.init(.inputOutput, error.message, hint: error.hint, underlying: error)
    }
  }

  /// The codes of a database and its vault that keep their names.
  private static let databaseCodes: Set<VaultedDatabaseError.Code> = [
    .alreadyExists, .busy, .damaged, .databaseMismatch, .databaseMissing, .diskFull, .foreignFile,
    .invalidArgument, .keyMissing, .newerVersion, .plainDatabase, .readOnly, .rolledBack,
    .vaultLocked,
  ]

  private static func code(of error: VaultError) -> Code {
    switch error.code {
    case .wrongPassword: .wrongPassword
    case .locked, .sessionStale: .vaultLocked
    case .doesNotExist: .vaultMissing
    case .damaged: .damaged
    case .newerVersion: .newerVersion
    default: .vault
    }
  }
}
