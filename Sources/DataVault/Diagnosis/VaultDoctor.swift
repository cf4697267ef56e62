internal import VaultCrypto

/// Looks for what is not as it should be: with this process, with a store, with each vault in it.
///
/// It changes nothing, needs no password and tries none. Whether a wrong attempt could be recorded it tries
/// by a file beside the record, which it removes.
public enum VaultDoctor {
  /// Everything that is found: first about the process, then the store, then vault by vault.
  ///
  /// Memory is judged by locking a page, and by all secrets that this process has had so far.
  public static func examine(_ store: any VaultStore) async -> [VaultFinding] {
    await examine(store, parameters: VaultParameters(), canLockMemory: canLockMemory)
  }

  package static func examine(
    _ store: any VaultStore, parameters: VaultParameters, canLockMemory: () -> Bool
  ) async -> [VaultFinding] {
    var findings: [VaultFinding] = []
    if !canLockMemory() { findings.append(.memoryNotLocked) }
    do throws(VaultError) {
      try VaultSession.checkAvailability(parameters: parameters)
    } catch {
      findings.append(.sessionsUnavailable(error))
    }
    do throws(VaultError) {
      let keeper = VaultOperations(store)
      for id in try await keeper.list() {
        findings += await Vault(id: id, store: store, parameters: parameters).findings()
      }
      findings += try await keeper.retiredNames().map { .retired($0) }
    } catch {
      findings.append(VaultFinding(error))
    }
    return findings
  }

  private static func canLockMemory() -> Bool {
    _ = SecretBytes(zeroCount: 1)
    return LockedMemory.isComplete
  }
}

extension VaultOperations {
  func retiredNames() throws(VaultError) -> [String] { try store.retiredNames() }
}

extension Vault {
  /// What is to be said of this vault.
  fileprivate func findings() -> [VaultFinding] {
    let status: VaultStatus
    do throws(VaultError) {
      status = try self.status()
    } catch {
      return [VaultFinding(error, of: id)]
    }
    var findings: [VaultFinding] = []
    if !status.isSecured { findings.append(.standardPassword(id)) }
    for count in status.slots.compactMap(\.iterationCount) where count < parameters.iterationCount {
      findings.append(.oldIterations(id, count, of: parameters.iterationCount))
    }
    if status.retryDelay > .zero { findings.append(.tooManyAttempts(id, status)) }
    // The publicly known password is no attempt.
    if status.isSecured, let finding = attemptFinding() { findings.append(finding) }
    return findings
  }
}

extension Vault {
  private func attemptFinding() -> VaultFinding? {
    do throws(VaultError) {
      try store.checkAttemptRecordIsWritable(id)
      return nil
    } catch {
      // Without the right to write files no attempt is taken at all.
      return error.code == .fileSizeLimit
        ? VaultFinding(error, of: id) : .attemptsNotRecorded(id, error)
    }
  }
}

extension VaultFinding {
  fileprivate static let memoryNotLocked = VaultFinding(
    .memoryNotLocked,
    "the system does not let this process lock memory: secrets may reach the swap",
    fix: "raise RLIMIT_MEMLOCK (`ulimit -l`, LimitMEMLOCK= of a systemd unit), or encrypt the swap")

  fileprivate static func sessionsUnavailable(_ error: VaultError) -> VaultFinding {
    VaultFinding(
      .sessionsUnavailable, error.message,
      fix: error.hint ?? "without sessions each command asks for the password")
  }

  fileprivate static func standardPassword(_ id: VaultID) -> VaultFinding {
    VaultFinding(
      .standardPassword, of: id,
      "vault '\(id)' opens with the publicly known password: there is no security",
      fix: id == .messaging ? "run `datavault secure`" : "change its password")
  }

  fileprivate static func oldIterations(
    _ id: VaultID, _ count: Int, of today: Int
  ) -> VaultFinding {
    VaultFinding(
      .oldIterations, of: id,
      "the password of vault '\(id)' is derived with \(count) iterations, not \(today)",
      fix: "unlock it once with its password, which raises them")
  }

  fileprivate static func tooManyAttempts(_ id: VaultID, _ status: VaultStatus) -> VaultFinding {
    let seconds = max(1, status.retryDelay.components.seconds)
    return VaultFinding(
      .tooManyAttempts, of: id,
      "vault '\(id)' waits \(seconds) s after \(status.failedAttemptCount) wrong attempts",
      fix: "wait; if the attempts were not yours, find out whose they were")
  }

  fileprivate static func attemptsNotRecorded(
    _ id: VaultID, _ error: VaultError
  ) -> VaultFinding {
    VaultFinding(
      .attemptsNotRecorded, of: id,
      "a wrong password of vault '\(id)' is not counted and makes nobody wait, because it cannot be recorded: \(error.message)",
      fix: error.hint ?? "let this user write the directory of the vaults")
  }

  fileprivate static func retired(_ name: String) -> VaultFinding {
    VaultFinding(
      .retiredVault, "a vault was retired: \(name)",
      fix: "delete it when nothing of it is wanted any more; under its old name it opens as before")
  }
}

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
    public static let tooManyAttempts = Kind("tooManyAttempts")
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
    public static let permissionsTooOpen = Kind("permissionsTooOpen")
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
