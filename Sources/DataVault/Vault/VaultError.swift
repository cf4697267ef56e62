package import FileLayer
internal import Glibc
package import SystemPackage
internal import VaultCrypto

/// The error of a failed vault operation, which has changed nothing unless ``message`` says
/// otherwise.
///
/// ``message`` says which vault and which operation, ``hint`` says what to do next. No text ever
/// contains a password, a key, an item's value or an item's name.
public struct VaultError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    init(_ name: String) { description = name }

    /// A vault with this id already exists.
    public static let alreadyExists = Code("alreadyExists")
    /// The store was read and holds no such vault.
    public static let doesNotExist = Code("doesNotExist")
    /// An argument breaks a rule; the message says which.
    public static let invalidArgument = Code("invalidArgument")
    /// The password or the salt is wrong (which of the two is unknown), or a recovery code or key
    /// file opens no slot.
    public static let wrongPassword = Code("wrongPassword")
    /// Too many consecutive attempts failed; the vault accepts none until some time has passed.
    public static let tooManyAttempts = Code("tooManyAttempts")
    /// This process cannot write files (`ulimit -f`), so its attempts could not be recorded.
    public static let fileSizeLimit = Code("fileSizeLimit")
    /// This process can open no more files (`ulimit -n`), so it cannot record an attempt.
    public static let openFileLimit = Code("openFileLimit")
    /// More consecutive attempts failed than the vault's policy allows; the vault has been deleted.
    public static let deletedByRetryLimit = Code("deletedByRetryLimit")
    /// The policy demands a password: the standard credentials are not allowed.
    public static let passwordRequired = Code("passwordRequired")
    /// The password has fewer characters than the policy demands.
    public static let passwordTooShort = Code("passwordTooShort")
    /// The policy demands a digit in the password.
    public static let needsDigit = Code("needsDigit")
    /// The policy demands an upper-case letter in the password.
    public static let needsUpper = Code("needsUpper")
    /// The policy demands a lower-case letter in the password.
    public static let needsLower = Code("needsLower")
    /// The policy demands a character in the password that is neither a letter nor a digit.
    public static let needsSpecial = Code("needsSpecial")
    /// The password has fewer different characters than the policy demands.
    public static let tooFewUniqueCharacters = Code("tooFewUniqueCharacters")
    /// The password is older than the policy allows; it can still be changed.
    public static let passwordExpired = Code("passwordExpired")
    /// The operation needs the vault unlocked.
    public static let locked = Code("locked")
    /// The vault's bytes are not the bytes that were written, or are not a vault.
    public static let damaged = Code("damaged")
    /// A later version of this software wrote the vault.
    public static let newerVersion = Code("newerVersion")
    /// The vault might exist, but cannot be read.
    public static let unreadable = Code("unreadable")
    /// The store cannot be reached.
    public static let storeUnavailable = Code("storeUnavailable")
    /// The store can be reached but is locked.
    public static let storeLocked = Code("storeLocked")
    /// Another caller has been changing the vault, or trying to open it, for longer than the
    /// timeout.
    public static let busy = Code("busy")
    /// The vault could not be written; the message says whether the change might have happened.
    public static let writeFailed = Code("writeFailed")
    /// Other users can read or write the vault or its directory.
    public static let permissionsTooOpen = Code("permissionsTooOpen")
    /// A lock file, or a partial file to continue, does not belong to this user alone: another user
    /// made it, or could have.
    public static let foreignFile = Code("foreignFile")
    /// An item's name is empty.
    public static let nameEmpty = Code("nameEmpty")
    /// An item's name has more than 255 bytes.
    public static let nameTooLong = Code("nameTooLong")
    /// A value is larger than 1 MiB.
    public static let valueTooLarge = Code("valueTooLarge")
    /// All items together would be larger than 16 MiB.
    public static let vaultFull = Code("vaultFull")
    /// The vault has no item with this name.
    public static let itemNotFound = Code("itemNotFound")
    /// The item is of the other kind.
    public static let wrongItemKind = Code("wrongItemKind")
    /// The vault is no longer under the standard credentials.
    public static let alreadySecured = Code("alreadySecured")
    /// The database whose key the vault keeps still exists.
    public static let databaseStillExists = Code("databaseStillExists")
    /// The data was not made by a vault's `encrypt`.
    public static let notSealedData = Code("notSealedData")
    /// The end of the sealed data is missing.
    public static let truncated = Code("truncated")
    /// The vault holds no key for this database or for this sealed data.
    public static let keyMissing = Code("keyMissing")
    /// An earlier change of the database's key has not been finished.
    public static let keyChangePending = Code("keyChangePending")
    /// A recovery code does not have 36 characters.
    public static let recoveryCodeLength = Code("recoveryCodeLength")
    /// A recovery code contains a character outside its alphabet.
    public static let recoveryCodeCharacter = Code("recoveryCodeCharacter")
    /// A recovery code's check characters are wrong: the code is mistyped.
    public static let recoveryCodeMistyped = Code("recoveryCodeMistyped")
    /// A key file's length is not 32 bytes.
    public static let keyFileLength = Code("keyFileLength")
    /// The vault already has a slot with this name.
    public static let slotExists = Code("slotExists")
    /// The vault has no slot with this name, or no slot of this kind.
    public static let slotNotFound = Code("slotNotFound")
    /// Without this slot nothing would open the vault.
    public static let lastSlot = Code("lastSlot")
    /// The vault already has 16 slots.
    public static let tooManySlots = Code("tooManySlots")
    /// A rotation neither has a slot's secret nor drops the slot by name.
    public static let slotSecretMissing = Code("slotSecretMissing")
    /// The vault is still under the standard credentials.
    public static let notSecured = Code("notSecured")
    /// The kernel cannot keep sessions for this process, because of a container, a sandbox or a
    /// quota.
    public static let sessionsUnavailable = Code("sessionsUnavailable")
    /// The desktop's keyring cannot be reached.
    public static let keyringUnavailable = Code("keyringUnavailable")
    /// The desktop's keyring is locked, and the user did not unlock it.
    public static let keyringLocked = Code("keyringLocked")
    /// The vault has new keys since its session began.
    public static let sessionStale = Code("sessionStale")
    /// A source of a secret is missing or empty, or its command failed; see ``SecretSource``.
    public static let secretUnavailable = Code("secretUnavailable")
    /// A secret is larger than 64 KiB.
    public static let secretTooLarge = Code("secretTooLarge")
    /// The cryptographic library lacks or refuses what is needed.
    public static let unsupported = Code("unsupported")
  }

  /// The kind of failure.
  public let code: Code

  /// The description of what went wrong and where, in lower case.
  public let message: String

  /// The next step for the user; nil if there is none.
  public let hint: String?

  /// The error that caused this one.
  public let underlying: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension VaultError {
  static func locked(_ id: VaultID) -> VaultError {
    VaultError(.locked, "vault '\(id)' is locked", hint: "unlock it with its password first")
  }

  static func newKeys(_ id: VaultID) -> VaultError {
    VaultError(
      .locked, "vault '\(id)' has new keys since it was unlocked", hint: "unlock it again")
  }

  static func doesNotExist(_ id: VaultID, in store: any VaultStore) -> VaultError {
    VaultError(
      .doesNotExist, "there is no vault '\(id)' (\(store.location(of: id)))",
      hint: "create it, or check that this is the right location")
  }

  static func alreadyExists(_ id: VaultID, in store: any VaultStore) -> VaultError {
    VaultError(
      .alreadyExists, "vault '\(id)' already exists (\(store.location(of: id)))",
      hint: "unlock it, or delete it first")
  }

  /// The error for a file of a store that breaks a rule of the format or has another format
  /// version.
  static func invalidFile(
    _ fault: FormatFault, _ id: VaultID, in store: any VaultStore
  ) -> VaultError {
    let vault = "vault '\(id)' (\(store.location(of: id)))"
    return invalidFile(
      fault, at: vault, damage: "\(vault) is damaged", hint: "restore the file from a backup")
  }

  /// As ``invalidFile(_:_:in:)``, for a file outside of any store.
  static func invalidFile(_ fault: FormatFault, at place: String) -> VaultError {
    invalidFile(
      fault, at: place, damage: "\(place) is not a vault, or is damaged",
      hint: "use another copy of the file")
  }

  private static func invalidFile(
    _ fault: FormatFault, at place: String, damage: String, hint: String
  ) -> VaultError {
    guard let version = fault.otherVersion else {
      return VaultError(.damaged, "\(damage): \(fault)", hint: hint)
    }
    return VaultError(
      .newerVersion,
      "\(place) has format version \(version); this software reads \(ClearMembers.version)",
      hint: "use the version of this software that wrote it")
  }

  static func crypto(_ error: CryptoError) -> VaultError {
    VaultError(
      .unsupported, "the cryptographic library failed: \(error)", underlying: error)
  }
}

/// Runs operations of a lower layer and converts their errors.
package func converting<Failure, R: ~Copyable>(
  _ convert: (Failure) -> VaultError, _ body: () throws(Failure) -> R
) throws(VaultError) -> R {
  do throws(Failure) {
    return try body()
  } catch {
    throw convert(error)
  }
}

/// Runs cryptographic operations and converts their errors.
func withCrypto<R: ~Copyable>(
  _ body: () throws(CryptoError) -> R
) throws(VaultError) -> R {
  try converting(VaultError.crypto, body)
}

extension VaultError {
  /// The error for a wrong secret; which part of it is wrong is unknown.
  static func wrongPassword(_ id: VaultID) -> VaultError {
    VaultError(
      .wrongPassword, "password or salt of vault '\(id)' is wrong",
      hint: "both must be as they were when the password was set")
  }

  static func tooManyAttempts(_ id: VaultID, wait: Duration, failureCount: Int) -> VaultError {
    VaultError(
      .tooManyAttempts,
      "vault '\(id)' accepts no attempt now, after \(failureCount) failed attempts in a row",
      hint: "try again in \(wait.inWords)")
  }

  static func deletedByRetryLimit(_ id: VaultID, failureCount: Int) -> VaultError {
    VaultError(
      .deletedByRetryLimit,
      "vault '\(id)' was deleted: \(failureCount) failed attempts in a row are more than its policy allows",
      hint: "restore it from a backup")
  }

  static func unrecordedAttempt(_ id: VaultID, _ reason: VaultError) -> VaultError {
    VaultError(
      reason.code == .busy ? .busy : .writeFailed,
      "vault '\(id)' did not open, and the attempt cannot be recorded: \(reason.message)",
      hint: reason.hint, underlying: reason)
  }
}

extension Duration {
  /// Whole seconds or minutes, rounded up, for people.
  var inWords: String {
    let seconds = Int(components.seconds) + (components.attoseconds > 0 ? 1 : 0)
    if seconds == 1 { return "1 second" }
    return seconds <= 120 ? "\(seconds) seconds" : "\((seconds + 59) / 60) minutes"
  }
}

extension VaultError {
  /// The error for a session that the kernel refused.
  static func sessionsUnavailable(_ error: KeyringError) -> VaultError {
    let hint =
      switch error.errno.rawValue {
      case EDQUOT:
        "this user has used up the quota of kernel keys: check /proc/key-users"
      case EPERM, EACCES, ENOSYS:
        "containers and service sandboxes often forbid sessions: start the service first, which takes one by its "
          + "socket, or give the password each time"
      default: "give the password each time"
      }
    return VaultError(
      .sessionsUnavailable, "the kernel's keyring refuses sessions (\(error))", hint: hint,
      underlying: error)
  }
}

extension VaultError {
  /// The error for a session that neither the kernel nor a process has taken.
  static func noProcessTookSession(
    of id: VaultID, _ reply: SessionReply, _ refusal: VaultError
  ) -> VaultError {
    let reason =
      switch reply.result {
      case .backingOff: "it accepts no key for \(reply.retryDelay.inWords)"
      case .wrongKey: "the key does not open its vault"
      case .unreadable: "it cannot read its vault"
      default: "it does not accept the session"
      }
    return VaultError(
      .sessionsUnavailable,
      "\(refusal.message), and process \(reply.processID) did not take the session of vault '\(id)': \(reason)",
      hint: reply.result == .backingOff
        ? "try again in \(reply.retryDelay.inWords)" : "check that the process uses the same home",
      underlying: refusal)
  }
}

extension VaultError {
  /// The error for a session that ended while it began.
  static func sessionReplaced(of id: VaultID) -> VaultError {
    VaultError(
      .busy, "a lock or another unlock has ended the new session of vault '\(id)'",
      hint: "unlock it again if it must be open")
  }

  /// The error for a session that a process sees in the kernel and could not end.
  static func processKeptSession(_ reply: SessionReply) -> VaultError {
    VaultError(
      .sessionsUnavailable,
      "process \(reply.processID) could not end its session in the kernel's keyring",
      hint: "run datavault lock as the user of that process, outside its container")
  }

  /// The error for a file that might exist but cannot be read.
  package static func unreadable(_ error: FileError) -> VaultError {
    VaultError(.unreadable, "\(error)", hint: error.hint, underlying: error)
  }

  /// The error for a directory that might exist but cannot be listed.
  static func unavailable(_ error: FileError) -> VaultError {
    VaultError(.storeUnavailable, "\(error)", hint: error.hint, underlying: error)
  }

  /// The error for a change that did not happen, or possibly did.
  package static func writeFailed(_ error: FileError) -> VaultError {
    VaultError(
      error.refusal == nil ? .writeFailed : .foreignFile, "\(error)",
      hint: error.hint, underlying: error)
  }

  /// The error for a lock that another caller holds for too long.
  package static func busy(_ what: String, lock path: FilePath, after busyTimeout: Duration)
    -> VaultError
  {
    VaultError(
      .busy,
      "somebody else has been \(what) for more than \(busyTimeout.components.seconds) seconds",
      hint: "try again; `fuser \(path)` shows who holds the lock")
  }

  /// The error for an attempt that is refused because this process could not record it.
  static func fileSizeLimit(_ path: FilePath) -> VaultError {
    VaultError(
      .fileSizeLimit,
      "attempt refused: this process has no right to write its outcome to \(path)",
      hint: "raise the limit on file sizes (`ulimit -f`, LimitFSIZE= of a systemd unit)")
  }

  /// The error for an attempt that is refused because this process could not open the files to
  /// record it.
  static func openFileLimit(_ path: FilePath, _ error: FileError) -> VaultError {
    VaultError(
      .openFileLimit,
      "no attempt is taken: this process cannot open the files to record it in \(path): \(error.errno)",
      hint: "raise its limit for open files (`ulimit -n`, LimitNOFILE= of a systemd unit)",
      underlying: error)
  }

  /// Whether a limit of this process, or of the system, is the reason, and not the store.
  var isOwnLimit: Bool {
    code == .fileSizeLimit || (underlying as? FileError)?.isResourceLimit == true
  }

  /// Whether the change can be in the store although the disk did not confirm it.
  var isUnconfirmed: Bool { (underlying as? FileError)?.operation == .synchronize }
}
