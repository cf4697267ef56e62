/// A problem of a vault, its store or this process, with its fix.
public struct VaultFinding: Sendable, Equatable {
  /// The kind's name, stable for programs: `standardPassword`, `oldIterations`, `tooManyAttempts`,
  /// `attemptsNotRecorded`, `retiredVault`, `memoryNotLocked`, or the name of the error's code.
  public let kind: String

  /// The vault concerned; nil for the store and the process.
  public let vaultID: VaultID?

  /// The error with which using the vault or the store would fail; nil if it works.
  public let error: VaultError.Code?

  /// The description of the problem, for people.
  public let message: String

  /// The next step for the user.
  public let fix: String

  init(_ kind: String, of id: VaultID? = nil, _ message: String, fix: String) {
    self.kind = kind
    vaultID = id
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultError, of id: VaultID? = nil) {
    kind = error.code.description
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
    "memoryNotLocked",
    "the system does not let this process lock memory: secrets can reach the swap",
    fix: "raise RLIMIT_MEMLOCK (`ulimit -l`, LimitMEMLOCK= of a systemd unit), or encrypt the swap")

  static func sessionsUnavailable(_ error: VaultError) -> VaultFinding {
    VaultFinding(
      "sessionsUnavailable", error.message,
      fix: error.hint ?? "give the password to each command")
  }

  static func standardPassword(_ id: VaultID) -> VaultFinding {
    VaultFinding(
      "standardPassword", of: id,
      "vault '\(id)' opens with the publicly known password: there is no security",
      fix: id == .messaging ? "run `datavault secure`" : "change its password")
  }

  static func oldIterations(
    _ id: VaultID, _ count: Int, of today: Int
  ) -> VaultFinding {
    VaultFinding(
      "oldIterations", of: id,
      "the password of vault '\(id)' is derived with \(count) iterations; new ones use \(today)",
      fix: "unlock it once with its password, which raises the number")
  }

  static func tooManyAttempts(_ id: VaultID, _ status: VaultStatus) -> VaultFinding {
    VaultFinding(
      "tooManyAttempts", of: id,
      "vault '\(id)' accepts no attempt for \(status.retryDelay.inWords) after \(status.failedAttemptCount) failed attempts",
      fix: "wait; if the attempts were not yours, find out whose they were")
  }

  static func attemptsNotRecorded(
    _ id: VaultID, _ error: VaultError
  ) -> VaultFinding {
    VaultFinding(
      "attemptsNotRecorded", of: id,
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
      "retiredVault", "the store holds a retired vault: \(name)",
      fix: "delete it if you no longer need it; to open it, give it back its old name")
  }
}
