/// A problem of a vault, its store or this process, with its fix.
public struct VaultFinding: Sendable, Equatable {
  /// The kinds of findings; later versions can add kinds.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    /// The kind's name, stable for programs.
    public let description: String

    init(_ name: String) {
      description = name
    }

    /// The standard credentials, which are public, open the vault.
    public static let standardPassword = Kind("standardPassword")
    /// A password slot has fewer iterations than a new one would get.
    public static let oldIterations = Kind("oldIterations")
    /// The vault accepts no attempt for now, after failed attempts.
    public static let tooManyAttempts = Kind("tooManyAttempts")
    /// Failed attempts to open a vault cannot be recorded, and are not counted.
    ///
    /// Reasons are a full disk, a directory that this user cannot write, a read-only file system.
    public static let attemptsNotRecorded = Kind("attemptsNotRecorded")
    /// This process cannot write files, and therefore cannot try to open a vault.
    public static let fileSizeLimit = Kind("fileSizeLimit")
    /// This process can open no more files, and so cannot try to open a vault.
    public static let openFileLimit = Kind("openFileLimit")
    /// The lock file of a vault does not belong to this user alone: the vault cannot be changed.
    public static let foreignFile = Kind("foreignFile")
    /// The vault cannot be changed: its lock file cannot be used, or a directory is in the place of
    /// the temporary file of a write.
    public static let writeFailed = Kind("writeFailed")
    /// A vault was moved aside under another name.
    public static let retiredVault = Kind("retiredVault")
    /// The system refuses to keep this process's secrets out of the swap.
    public static let memoryNotLocked = Kind("memoryNotLocked")
    /// The kernel cannot keep sessions for this process.
    public static let sessionsUnavailable = Kind("sessionsUnavailable")
    /// The store cannot be reached: no session bus, no service on it, or no collection.
    ///
    /// Each case has its own message and fix.
    public static let storeUnavailable = Kind("storeUnavailable")
    /// The store is locked.
    public static let storeLocked = Kind("storeLocked")
    /// Other users can read or write a vault or the directory of the vaults.
    public static let permissionsTooOpen = Kind("permissionsTooOpen")
    /// A vault might exist, but cannot be read.
    public static let unreadable = Kind("unreadable")
    /// A vault's bytes are not the bytes that were written.
    public static let damaged = Kind("damaged")
    /// A later version of this software wrote a vault.
    public static let newerVersion = Kind("newerVersion")
  }

  /// The kind of problem.
  public let kind: Kind

  /// The vault concerned; nil for the store and the process.
  public let vaultID: VaultID?

  /// The error with which using the vault or the store would fail; nil if it works.
  public let error: VaultError.Code?

  /// The description of the problem, for people.
  public let message: String

  /// The next step for the user.
  public let fix: String

  init(_ kind: Kind, of id: VaultID? = nil, _ message: String, fix: String) {
    self.kind = kind
    vaultID = id
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultError, of id: VaultID? = nil) {
    kind = Kind(error.code.description)
    vaultID = id
    self.error = error.code
    message = error.message
    fix = error.hint ?? Self.fixes[error.code] ?? "see the message"
  }

  private static let fixes: [VaultError.Code: String] = [
    .damaged: "restore the vault from a backup",
    .newerVersion: "use the version of this software that wrote it",
    .unreadable: "let this user read it: check the owner and mode of its file and directories",
    .storeUnavailable: "start the service that keeps the vaults, or keep them in files",
    .storeLocked: "unlock the service that keeps the vaults",
  ]
}

extension VaultFinding {
  static let memoryNotLocked = VaultFinding(
    .memoryNotLocked,
    "the system does not let this process lock memory: secrets can reach the swap",
    fix: "raise RLIMIT_MEMLOCK (`ulimit -l`, LimitMEMLOCK= of a systemd unit), or encrypt the swap")

  static func sessionsUnavailable(_ error: VaultError) -> VaultFinding {
    VaultFinding(
      .sessionsUnavailable, error.message,
      fix: error.hint ?? "give the password to each command")
  }

  static func standardPassword(_ id: VaultID) -> VaultFinding {
    VaultFinding(
      .standardPassword, of: id,
      "vault '\(id)' opens with the publicly known password: there is no security",
      fix: id == .messaging ? "run `datavault secure`" : "change its password")
  }

  static func oldIterations(
    _ id: VaultID, _ count: Int, of today: Int
  ) -> VaultFinding {
    VaultFinding(
      .oldIterations, of: id,
      "the password of vault '\(id)' is derived with \(count) iterations; new ones use \(today)",
      fix: "unlock it once with its password, which raises the number")
  }

  static func tooManyAttempts(_ id: VaultID, _ status: VaultStatus) -> VaultFinding {
    VaultFinding(
      .tooManyAttempts, of: id,
      "vault '\(id)' accepts no attempt for \(status.retryDelay.inWords) after \(status.failedAttemptCount) failed attempts",
      fix: "wait; if the attempts were not yours, find out whose they were")
  }

  static func attemptsNotRecorded(
    _ id: VaultID, _ error: VaultError
  ) -> VaultFinding {
    VaultFinding(
      .attemptsNotRecorded, of: id,
      "failed attempts on vault '\(id)' are not counted or delayed because they cannot be recorded: \(error.message)",
      fix: error.hint ?? "make the directory of the vaults writable for this user")
  }

  static func unchangeable(
    _ id: VaultID, _ error: VaultError, and consequence: String = ""
  ) -> VaultFinding {
    VaultFinding(
      VaultError(
        error.code, "vault '\(id)' cannot be changed\(consequence): \(error.message)",
        hint: error.hint, underlying: error),
      of: id)
  }

  static func retired(_ name: String) -> VaultFinding {
    VaultFinding(
      .retiredVault, "the store holds a retired vault: \(name)",
      fix: "delete it if you no longer need it; to open it, give it back its old name")
  }
}
