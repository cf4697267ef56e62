package import FileLayer
internal import Glibc
package import SystemPackage
internal import VaultCrypto

/// Why a vault operation did nothing.
///
/// Which vault and what was being done stand in ``message``, what to do next in ``hint``. None of
/// the texts ever holds a password, a key, an item's value or an item's name.
public struct VaultError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    init(_ name: String) {
      description = name
    }

    /// A vault of this id exists.
    public static let alreadyExists = Code("alreadyExists")
    /// The store could be read and holds no such vault.
    public static let doesNotExist = Code("doesNotExist")
    /// An argument breaks a rule; the message says which.
    public static let invalidArgument = Code("invalidArgument")
    /// Password or salt is wrong, which of the two cannot be told; or a recovery code or key file
    /// opens no slot.
    public static let wrongPassword = Code("wrongPassword")
    /// Too many attempts in a row were wrong; none is taken before some time has passed.
    public static let tooManyAttempts = Code("tooManyAttempts")
    /// This process may write no files (`ulimit -f`), so that no attempt of its could be recorded.
    public static let fileSizeLimit = Code("fileSizeLimit")
    /// More attempts in a row were wrong than the vault's policy allows: it has been deleted.
    public static let wiped = Code("wiped")
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
    /// The vault's bytes are not what was written, or not a vault's.
    public static let damaged = Code("damaged")
    /// A later version of this software wrote the vault.
    public static let newerVersion = Code("newerVersion")
    /// The vault may be there, but cannot be read.
    public static let unreadable = Code("unreadable")
    /// The place where vaults are kept cannot be reached.
    public static let storeUnavailable = Code("storeUnavailable")
    /// The place where vaults are kept is there but locked.
    public static let storeLocked = Code("storeLocked")
    /// Somebody else has been changing the vault, or trying to open it, for longer than one waits.
    public static let busy = Code("busy")
    /// The vault could not be written; the message says whether the change may have happened.
    public static let writeFailed = Code("writeFailed")
    /// The vault, or its directory, may be read or written by other users.
    public static let permissionsTooOpen = Code("permissionsTooOpen")
    /// A lock file, or another file that was to be gone on with, is not this user's alone: another user
    /// made it, or could have.
    public static let foreignFile = Code("foreignFile")
    /// An item's name has no bytes.
    public static let nameEmpty = Code("nameEmpty")
    /// An item's name has more than 255 bytes.
    public static let nameTooLong = Code("nameTooLong")
    /// A value has more than 1 MiB.
    public static let valueTooLarge = Code("valueTooLarge")
    /// All items together would have more than 16 MiB.
    public static let vaultFull = Code("vaultFull")
    /// The vault holds no item of this name.
    public static let itemNotFound = Code("itemNotFound")
    /// The item is of the other kind.
    public static let wrongItemKind = Code("wrongItemKind")
    /// The vault is no longer under the standard credentials.
    public static let alreadySecured = Code("alreadySecured")
    /// The database whose key the vault keeps still exists.
    public static let databaseStillExists = Code("databaseStillExists")
    /// The data is not what a vault's `encrypt` makes.
    public static let notSealedData = Code("notSealedData")
    /// Sealed data whose end is missing.
    public static let truncated = Code("truncated")
    /// The vault keeps no key for this database or for this sealed data.
    public static let keyMissing = Code("keyMissing")
    /// An earlier change of the database's key has not been finished.
    public static let keyChangePending = Code("keyChangePending")
    /// A recovery code does not have 36 characters.
    public static let recoveryCodeLength = Code("recoveryCodeLength")
    /// A recovery code holds a character that none has.
    public static let recoveryCodeCharacter = Code("recoveryCodeCharacter")
    /// A recovery code's check characters do not fit: it is mistyped.
    public static let recoveryCodeMistyped = Code("recoveryCodeMistyped")
    /// A key file does not have 32 bytes.
    public static let keyFileLength = Code("keyFileLength")
    /// The vault has a slot of this name.
    public static let slotExists = Code("slotExists")
    /// The vault has no slot of this name, or none of this kind.
    public static let slotNotFound = Code("slotNotFound")
    /// Without this slot nothing would open the vault.
    public static let lastSlot = Code("lastSlot")
    /// The vault has 16 slots.
    public static let tooManySlots = Code("tooManySlots")
    /// A slot is neither kept, by its secret, nor dropped by name.
    public static let slotSecretMissing = Code("slotSecretMissing")
    /// The vault is still under the standard credentials.
    public static let notSecured = Code("notSecured")
    /// The kernel keeps no sessions for this process: a container, a sandbox, a quota.
    public static let sessionsUnavailable = Code("sessionsUnavailable")
    /// The vault has got new keys since its session began.
    public static let sessionStale = Code("sessionStale")
    /// The cryptographic library lacks or refuses what is needed.
    public static let unsupported = Code("unsupported")
  }

  /// What kind of failure.
  public let code: Code

  /// What went wrong and where, lowercase.
  public let message: String

  /// What to do next, where there is something.
  public let hint: String?

  /// The error beneath.
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

  /// The message, and the hint in parentheses.
  public var description: String {
    hint.map { "\(message) (\($0))" } ?? message
  }
}

extension VaultError {
  static func locked(_ id: VaultID) -> VaultError {
    VaultError(.locked, "vault '\(id)' is locked", hint: "unlock it with its password first")
  }

  static func doesNotExist(_ id: VaultID, in store: any VaultStore) -> VaultError {
    VaultError(
      .doesNotExist, "there is no vault '\(id)' (\(store.location(of: id)))",
      hint: "create it, or check that this is the right home")
  }

  static func alreadyExists(_ id: VaultID, in store: any VaultStore) -> VaultError {
    VaultError(
      .alreadyExists, "vault '\(id)' exists already (\(store.location(of: id)))",
      hint: "unlock it, or delete it first")
  }

  /// A file that breaks a rule of the format, or follows another one.
  static func refused(
    _ fault: FormatFault, _ id: VaultID, in store: any VaultStore
  ) -> VaultError {
    if let version = fault.otherVersion {
      return VaultError(
        .newerVersion,
        "vault '\(id)' (\(store.location(of: id))) has format version \(version), this software reads \(ClearMembers.version)",
        hint: "use the version of this software that wrote it")
    }
    return VaultError(
      .damaged, "vault '\(id)' (\(store.location(of: id))) is damaged: \(fault)",
      hint: "restore the file from a backup")
  }

  static func crypto(_ error: CryptoError) -> VaultError {
    VaultError(
      .unsupported, "the cryptographic library refused: \(error)", underlying: error)
  }
}

/// Does what the cryptographic library may refuse.
func withCrypto<R: ~Copyable>(
  _ body: () throws(CryptoError) -> R
) throws(VaultError) -> R {
  do throws(CryptoError) {
    return try body()
  } catch {
    throw .crypto(error)
  }
}

extension VaultError {
  /// The secret is wrong; which part of it cannot be told.
  static func wrongPassword(_ id: VaultID) -> VaultError {
    VaultError(
      .wrongPassword, "password or salt of vault '\(id)' is wrong",
      hint: "both must be as they were when the password was set")
  }

  static func tooManyAttempts(_ id: VaultID, wait: Duration, failureCount: Int) -> VaultError {
    VaultError(
      .tooManyAttempts,
      "vault '\(id)' takes no attempt now: \(failureCount) wrong ones in a row",
      hint: "try again in \(wait.inWords)")
  }

  static func wiped(_ id: VaultID, failureCount: Int) -> VaultError {
    VaultError(
      .wiped,
      "vault '\(id)' was deleted: \(failureCount) wrong attempts in a row are more than its policy allows",
      hint: "restore it from a backup, if there is one")
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
  fileprivate var inWords: String {
    let seconds = Int(components.seconds) + (components.attoseconds > 0 ? 1 : 0)
    if seconds == 1 { return "1 second" }
    return seconds <= 120 ? "\(seconds) seconds" : "\((seconds + 59) / 60) minutes"
  }
}

extension VaultError {
  /// What the kernel's refusal means to whoever asked for a session.
  static func sessionsUnavailable(_ error: KeyringError) -> VaultError {
    let hint =
      switch error.errno.rawValue {
      case EDQUOT:
        "this user has used up the quota of kernel keys: see /proc/key-users"
      case EPERM, EACCES, ENOSYS:
        "containers and service sandboxes often forbid it: give the password each time"
      default: "give the password each time"
      }
    return VaultError(
      .sessionsUnavailable, "the kernel's keyring refuses sessions (\(error))", hint: hint,
      underlying: error)
  }
}

extension VaultError {
  /// A file that may be there but cannot be read.
  package static func unreadable(_ error: FileError) -> VaultError {
    VaultError(.unreadable, "\(error)", hint: hint(for: error), underlying: error)
  }

  /// A directory that may be there but cannot be listed.
  static func unavailable(_ error: FileError) -> VaultError {
    VaultError(.storeUnavailable, "\(error)", hint: hint(for: error), underlying: error)
  }

  /// A change that did not happen, or of which that is not certain.
  package static func writeFailed(_ error: FileError) -> VaultError {
    VaultError(
      error.refusal == nil ? .writeFailed : .foreignFile, "\(error)",
      hint: error.hint ?? hint(for: error), underlying: error)
  }

  /// A lock that somebody else does not give back.
  package static func busy(_ what: String, lock path: FilePath, after patience: Duration)
    -> VaultError
  {
    VaultError(
      .busy, "somebody else has been \(what) for more than \(patience.components.seconds) seconds",
      hint: "try again; `fuser \(path)` shows who holds the lock")
  }

  /// An attempt that is not taken, because this process could not record it.
  static func fileSizeLimit(_ path: FilePath) -> VaultError {
    VaultError(
      .fileSizeLimit,
      "no attempt is taken: this process may not write what it would record in \(path)",
      hint: "raise its limit for the size of files (`ulimit -f`, LimitFSIZE= of a systemd unit)")
  }

  private static func hint(for error: FileError) -> String? {
    if error.operation == .synchronize {
      return "the disk did not confirm the change; open the vault again to see whether it happened"
    }
    return switch error.errno {
    case .permissionDenied, .notPermitted: "run as the user to whom \(error.path) belongs"
    case .noSpace, .diskQuotaExceeded: "free some space; the vault is as it was"
    case .readOnlyFileSystem: "the file system is mounted read-only"
    case .tooManySymbolicLinkLevels: "a vault is never behind a symbolic link"
    default: nil
    }
  }
}

extension VaultError {
  /// A file outside of any store that breaks a rule of the format, or follows another one.
  static func refused(_ fault: FormatFault, at place: String) -> VaultError {
    if let version = fault.otherVersion {
      return VaultError(
        .newerVersion,
        "\(place) has format version \(version), this software reads \(ClearMembers.version)",
        hint: "use the version of this software that wrote it")
    }
    return VaultError(
      .damaged, "\(place) is no vault, or a damaged one: \(fault)",
      hint: "take another copy of it")
  }
}
