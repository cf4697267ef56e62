/// Something about vaults, their store or this process that is not as it should be, with its fix.
public struct VaultFinding: Sendable, Equatable {
  /// The kinds of findings; new ones may be added.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    /// The kind's name, stable for programs.
    public let description: String

    init(_ name: String) {
      description = name
    }

    /// The kind that says the same as an error.
    init(_ code: VaultError.Code) {
      self.init(code.description)
    }

    /// The publicly known credentials open the vault.
    public static let standardPassword = Kind("standardPassword")
    /// A password slot has fewer iterations than a new one would get.
    public static let oldIterations = Kind("oldIterations")
    /// Wrong attempts make the vault wait.
    public static let backingOff = Kind("backingOff")
    /// Wrong attempts to open a vault cannot be recorded, and so are not counted: a full disk, a
    /// directory that this user cannot write, a file system that is read-only.
    public static let attemptsNotRecorded = Kind("attemptsNotRecorded")
    /// This process may write no files, and so may not try to open a vault.
    public static let fileSizeLimit = Kind("fileSizeLimit")
    /// A vault was put aside under another name.
    public static let retiredVault = Kind("retiredVault")
    /// The system refuses to keep secrets of this process out of the swap.
    public static let memoryNotLocked = Kind("memoryNotLocked")
    /// The kernel keeps no sessions for this process.
    public static let sessionsUnavailable = Kind("sessionsUnavailable")
    /// The place where vaults are kept is not to be reached: no session bus, no service on it, no
    /// collection, each with its own message and fix.
    public static let storeUnavailable = Kind("storeUnavailable")
    /// The place where vaults are kept is locked.
    public static let storeLocked = Kind("storeLocked")
    /// A vault, or the directory of the vaults, may be read or written by other users.
    public static let loosePermissions = Kind("loosePermissions")
    /// A vault may be there, but cannot be read.
    public static let unreadable = Kind("unreadable")
    /// A vault's bytes are not what was written.
    public static let damaged = Kind("damaged")
    /// A later version of this software wrote a vault.
    public static let newerVersion = Kind("newerVersion")
  }

  /// What was found.
  public let kind: Kind

  /// The vault that it is about; nil for the store and the process.
  public let vaultID: VaultID?

  /// The error that using the vault, or the store, would end with; nil when it works all the same.
  public let error: VaultError.Code?

  /// What was found, for people.
  public let message: String

  /// What to do about it.
  public let fix: String

  init(_ kind: Kind, of id: VaultID? = nil, _ message: String, fix: String) {
    self.kind = kind
    vaultID = id
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultError, of id: VaultID? = nil) {
    kind = Kind(error.code)
    vaultID = id
    self.error = error.code
    message = error.message
    fix = error.hint ?? Self.fixes[error.code] ?? "see the message"
  }

  private static let fixes: [VaultError.Code: String] = [
    .damaged: "put a backup of the vault in its place",
    .newerVersion: "use the version of this software that wrote it",
    .unreadable: "let this user read it: see the owner and the mode of its file and directories",
    .storeUnavailable: "start what keeps the vaults, or keep them in files",
    .storeLocked: "unlock what keeps the vaults",
  ]
}
