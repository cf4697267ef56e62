/// Why the engine did not do what it was asked.
///
/// An error never carries a payload, a password or a key.
public struct EngineError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure, to be compared with the static members; new ones may be added.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    public let description: String

    init(_ name: String) { description = name }
  }

  /// What kind of failure.
  public let code: Code

  /// What went wrong and where, in lower case.
  public let message: String

  /// What to do next, where there is something to do.
  public let hint: String?

  /// The error of the layer below, if one was the cause.
  public let underlying: (any Error)?

  /// The tokens that settled nothing, with ``Code/unknownLease``; all others were settled.
  public let unknownLeases: [LeaseToken]

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil,
    unknownLeases: [LeaseToken] = []
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
    self.unknownLeases = unknownLeases
  }

  /// The message, and the hint in brackets.
  public var description: String {
    if let hint { "\(message) (\(hint))" } else { message }
  }
}

extension EngineError.Code {
  /// The messaging vault is locked and the user's password is needed to open it.
  public static let vaultLocked = Self("vaultLocked")
  /// The password or the salt is not the vault's.
  public static let wrongPassword = Self("wrongPassword")
  /// There is no vault where one was: it was handed in, a session opens it, or a secured one is required.
  public static let vaultMissing = Self("vaultMissing")
  /// The vault is not secured, and ``EngineConfiguration/requiresSecuredVault`` is set.
  public static let notSecured = Self("notSecured")
  /// There is a database and no vault that could hold its key.
  public static let keyMissing = Self("keyMissing")
  /// The vault belongs to a database that is not there.
  public static let databaseMissing = Self("databaseMissing")
  /// The database belongs to another vault, or to none.
  public static let foreignDatabase = Self("foreignDatabase")
  /// The database is an older copy, or has lost its last commits.
  public static let rolledBack = Self("rolledBack")
  /// The engine was stopped.
  public static let stopped = Self("stopped")
  /// An unencrypted SQLite file lies where the encrypted database belongs.
  public static let plainDatabase = Self("plainDatabase")
  /// A payload is over ``EngineConfiguration/maximumPayloadByteCount``.
  public static let payloadTooLarge = Self("payloadTooLarge")
  /// A channel name is empty, too long or holds control characters.
  public static let invalidChannel = Self("invalidChannel")
  /// A count, a lease or a delay is out of range.
  public static let invalidArgument = Self("invalidArgument")
  /// A delivery was settled already, or has been leased to another since.
  public static let unknownLease = Self("unknownLease")
  /// Another process held the database past the busy timeout; nothing was changed.
  public static let busy = Self("busy")
  /// Retention, a purge or the consumers removed messages before a live reader saw them.
  public static let messagesRemoved = Self("messagesRemoved")
  /// The file system is full; nothing was changed.
  public static let diskFull = Self("diskFull")
  /// The database may only be read.
  public static let readOnly = Self("readOnly")
  /// The database is damaged, or is not one of the engine's.
  public static let damaged = Self("damaged")
  /// The database was written by a newer version of this software.
  public static let newerVersion = Self("newerVersion")
  /// A commit met an I/O error: whether what it was to store is on the disk is unknown.
  ///
  /// A retry with the same deduplication id settles it.
  public static let outcomeUnknown = Self("outcomeUnknown")
  /// The caller's task was cancelled before anything was done.
  public static let cancelled = Self("cancelled")
  /// Reading or writing failed in the system; nothing was changed.
  public static let inputOutput = Self("inputOutput")
  /// Something has the name already that a new file is to get, or messages that are to be imported are
  /// here already.
  public static let alreadyExists = Self("alreadyExists")
  /// A lock file, or an unfinished file, is not this user's alone: another user made it, or could have.
  public static let foreignFile = Self("foreignFile")
  /// There is no channel of that name.
  public static let channelMissing = Self("channelMissing")
  /// There is no file of messages to be imported.
  public static let fileMissing = Self("fileMissing")
  /// A file of messages is not what it should be; the message names the line.
  public static let invalidFile = Self("invalidFile")
  /// The vault could not be used; ``EngineError/underlying`` has its error.
  public static let vault = Self("vault")
}
